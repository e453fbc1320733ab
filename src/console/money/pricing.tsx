/** @jsxImportSource @hono/hono/jsx */
import { mapCommonPrices } from "../../base/token_classes.ts";
import { parseWith } from "../../base/request.ts";
import { pricingSchema } from "../../projects/price_schema.ts";
import type { Project } from "../../projects/schema.ts";
import { listPriceOf, PricingTabs } from "../settings/catalogue.tsx";
import type { Prices } from "../../pricing/terms.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { orShowFormAgain } from "../submitted_fields.ts";
import {
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  Hidden,
} from "../../pages/form_parts.tsx";
import { ExactMoney, Table } from "../../pages/parts.tsx";
import { effectsOf, type PriceEffect, type PriceEffects } from "./price_effect.ts";
import {
  defaultSample,
  fieldName,
  type ModelRow,
  modelsMax,
  type PriceForm,
  priceFormOf,
  pricingOf,
  readPriceForm,
  readSample,
  type Sample,
} from "./price_form.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "../save.ts";

const section = "/pricing";
const part: SettingsPart = ({ pricing }) => pricing;
const labels = { markupPercent: "Markup on catalogue prices", requestFee: "Fee per response" };
/** Returns what a field of the sample shows, by its name. */
type SampleText = (name: string) => string;

/** The project's prices; a change shows its effect on a sample request before it is saved. */
export function pricingPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const page = (visit: ProjectVisit, view: Omit<PricingView, "visit" | "date">) =>
    visit.page(
      "Pricing",
      <Pricing visit={visit} date={services.prices.catalogueDate} {...view} />,
      {
        section,
        problem: view.problem,
      },
    );

  return {
    show: guard.project((visit) => {
      const { project } = visit;
      const model = Object.keys(project.pricing.models).find((name) => name !== "*") ?? "";
      const [sample, seen] = [usualSample(model), fingerprintOf(part, project)];
      const form = withModel(priceFormOf(project), visit, {
        prices: services.prices,
        at: services.deps.clock.now(),
      });
      return page(visit, { form, sample, seen, problem: null });
    }),
    change: guard.project(async (visit) => {
      const form = await visit.form();
      const shown = priceFormOf(visit.project);
      const filled = form.get("as") === "json"
        ? { ...shown, json: form.get("json") ?? "" }
        : { ...readPriceForm(form), json: shown.json };
      const typed: SampleText = (name) => form.get(name) ?? "";
      const again = { form: filled, sample: typed };
      return await orShowFormAgain(
        async () => {
          const sample = readSample(form);
          const changes = ({ pricing }: Project) => ({ pricing: pricingOf(form, pricing) });
          const parsed = parseWith(pricingSchema, changes(visit.project).pricing);
          if (form.get("action") === "save") {
            return await saveSettings(services, visit, { section, part, form, changes });
          }
          if (form.get("action") !== "effect") {
            return page(visit, { ...again, seen: form.get("seen") ?? "", problem: null });
          }
          const effects = effectsOf({ prices: services.prices, at: services.deps.clock.now() }, {
            project: visit.project,
            pricing: parsed,
            sample,
          });
          return visit.page(
            "Save these prices?",
            <ConfirmSave {...{ visit, form, sample, effects }} />,
            { section },
          );
        },
        (problem, error) => page(visit, { ...again, seen: fingerprintAfter(form, error), problem }),
        labels,
      );
    }),
  };
}

/** Puts a model that was chosen in the catalogue into the first empty row, at its list price. */
function withModel(
  form: PriceForm,
  { project, incoming }: ProjectVisit,
  { prices, at }: { prices: Prices; at: number },
): PriceForm {
  const name = incoming.query("model") ?? "";
  if (name === "" || form.models.some((row) => row.name === name)) return form;
  const price = listPriceOf(prices, project, name, at)?.perMillion;
  const empty = form.models.findIndex((row) => row.name === "");
  const models = form.models.map((row, place) =>
    place !== empty ? row : {
      ...row,
      name,
      ...mapCommonPrices(({ price: field }) => price?.[field] ?? ""),
    }
  );
  return { ...form, models };
}

function usualSample(model: string): SampleText {
  const { prompt, cached, output } = defaultSample;
  const fields = new Map<string, string | number>([
    ["sampleModel", model],
    ["samplePrompt", prompt],
    ["sampleCached", cached],
    ["sampleOutput", output],
  ]);
  return (name) => String(fields.get(name) ?? "");
}

interface PricingView {
  /** The catalogue's. */
  date: string;
  visit: ProjectVisit;
  form: PriceForm;
  sample: SampleText;
  seen: string;
  problem: string | null;
}

function Pricing({ visit: { project, here }, form, sample, seen, problem, date }: PricingView) {
  const currency = project.currency.toUpperCase();
  return (
    <>
      <PricingTabs here={here} shown="own" />
      <FormError text={problem} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ seen }} />
        <CatalogueFields {...{ form, date, currency }} />
        <h2>Your own prices</h2>
        <p>
          In {currency}{" "}
          per million tokens. The markup is not added to these prices; the fee per response is. “*”
          is the price of every model that has none. To remove a model, clear its name.
        </p>
        <Models models={form.models} />
        <NotShown project={project} />
        <SampleFields sample={sample} />
        <button type="submit" name="action" value="effect" class="primary">
          Review changes
        </button>
      </form>
      <AsJson
        {...{ seen, json: form.json, action: here(section) }}
        isChanged={form.json !== priceFormOf(project).json}
      />
    </>
  );
}

function CatalogueFields({ form, date, currency }: {
  form: PriceForm;
  date: string;
  currency: string;
}) {
  return (
    <FormSection
      title="Catalogue"
      says={`Providers’ list prices of ${date}, with your markup and a fee per response.`}
    >
      <FormCheckbox
        name="catalogue"
        on={form.catalogue}
        label={`Serve every model of the catalogue${
          currency === "USD" ? "" : " (in projects in USD only)"
        }`}
      />
      <div class="fields">
        <FormField
          name="markupPercent"
          label={`${labels.markupPercent}, %`}
          value={form.markupPercent}
          more={{ inputmode: "decimal" }}
        />
        <FormField
          name="requestFee"
          label={`${labels.requestFee}, ${currency}`}
          value={form.requestFee}
          more={{ inputmode: "decimal" }}
        />
      </div>
    </FormSection>
  );
}

/** Everything that a price can say: tiers, service tiers, time windows, tools and more. */
function AsJson({ seen, json, action, isChanged }: {
  seen: string;
  json: string;
  action: string;
  isChanged: boolean;
}) {
  return (
    <details open={isChanged}>
      <summary>All prices as JSON</summary>
      <p>
        Tiers, service tiers, times of day, prices of tools and the other classes of tokens are
        edited here. The guide to prices has every field.
      </p>
      <form method="post" action={action}>
        <Hidden fields={{ seen, as: "json" }} />
        <textarea name="json" rows={24} spellcheck={false} aria-label="Prices as JSON">
          {json}
        </textarea>
        <p class="actions">
          <button type="submit" name="action" value="effect">Review the JSON</button>
        </p>
      </form>
    </details>
  );
}

const columns = [
  ["name", "Model"],
  ...Object.values(mapCommonPrices(({ price, label }) => [price, label] as const)),
  ["maxOutputTokens", "Max. output"],
] as const;

function Models({ models }: { models: ModelRow[] }) {
  const caption = "Empty prices of cached input and cache writes default to the input price";
  return (
    <div class="table" role="region" aria-label="Prices of models" tabindex={0}>
      <table class="inputs">
        <caption>{caption}</caption>
        <thead>
          <tr>{columns.map(([, title]) => <th scope="col">{title}</th>)}</tr>
        </thead>
        <tbody>
          {models.map((row, at) => (
            <tr>
              {columns.map(([column, title], place) => (
                <td data-label={title}>
                  {place === 0 ? <Hidden fields={{ [fieldName(at, "was")]: row.was }} /> : null}
                  <input
                    name={fieldName(at, column)}
                    value={row[column]}
                    aria-label={`${title} of ${row.was || `new model ${at + 1}`}`}
                    inputmode={place === 0 ? undefined : "decimal"}
                    autocomplete="off"
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NotShown({ project: { pricing } }: { project: Project }) {
  const more = Object.keys(pricing.models).length - modelsMax;
  return more > 0 ? <p>{more} more models are not shown: edit them by the API.</p> : null;
}

function SampleFields({ sample }: { sample: SampleText }) {
  const number = (name: string, label: string) => (
    <FormField name={name} label={label} value={sample(name)} more={{ inputmode: "numeric" }} />
  );
  return (
    <FormSection
      title="Preview"
      says="The request whose cost is compared, now and after the change."
    >
      <div class="fields">
        <FormField name="sampleModel" label="Model" value={sample("sampleModel")} />
        {number("samplePrompt", "Prompt tokens")}
        {number("sampleCached", "Cached prompt tokens")}
        {number("sampleOutput", "Output tokens")}
      </div>
    </FormSection>
  );
}

function ConfirmSave({ visit: { project, here }, form, sample, effects }: {
  visit: ProjectVisit;
  form: URLSearchParams;
  sample: Sample;
  effects: PriceEffects;
}) {
  const { currency } = project;
  const cost = (amount: PriceEffect["now"]) =>
    amount === null ? "not served" : <ExactMoney amount={amount} currency={currency} />;
  const { prompt, cached, output } = sample;
  const { models, catalogue } = effects;
  return (
    <>
      {catalogue === null ? null : <p>{catalogue}</p>}
      <Table
        caption={`One response with ${prompt} prompt tokens (${cached} of them cached) and ${output} output tokens`}
        columns={["Model", { title: "Now", number: true }, { title: "After", number: true }, {
          title: "Change",
          number: true,
        }]}
        rows={models.map(({ model, now, then, change }) => [model, cost(now), cost(then), change])}
        empty={catalogue === null ? "No model’s price changes." : "None of your own prices change."}
      />
      <p>Running requests are charged at the prices that they started with.</p>
      <form method="post" action={here(section)}>
        <Hidden fields={Object.fromEntries([...form].filter(([name]) => name !== "action"))} />
        <p class="actions">
          <button type="submit" name="action" value="save" class="primary">Save the prices</button>
          <button type="submit" name="action" value="edit">Back</button>
          <a class="button" href={here(section)}>Cancel</a>
        </p>
      </form>
    </>
  );
}
