/** @jsxImportSource @hono/hono/jsx */
import { typedDecimal } from "../../base/money.ts";
import type { Project } from "../../projects/schema.ts";
import { urlOf } from "../../projects/upstream_schema.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { decimalText, integerText, orShowFormAgain, submittedText } from "../submitted_fields.ts";
import {
  Confirm,
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  Hidden,
} from "../../pages/form_parts.tsx";
import { Card, DetailList } from "../../pages/parts.tsx";
import { keepsTurns } from "../../inference/kept/kept_responses.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "../save.ts";

const section = "/settings";
const part: SettingsPart = fieldsOf;

const labels = {
  name: "Name",
  trialCredits: "Trial credits of a new user",
  lowBalance: "Warn below this balance",
  maxOutputTokens: "Max. output tokens of a response",
  allowedFields: "Request fields to pass on although they are unknown or have no price",
  topUpUrl: "Your own top-up page, instead of ours",
  "topUp.checkoutUrl": "Your own checkout, behind the hosted page",
  "topUp.amounts": "Amounts to choose from",
  "topUp.min": "Minimum",
  "topUp.max": "Maximum",
  "brand.logoUrl": "Logo",
  "brand.accent": "Color of the main button",
  "brand.supportUrl": "Help for users",
  requestLogDays: "Days for which requests are listed",
  keepResponses: "Keep turns of conversations",
  paywallOnJson: "Answer 402 where JSON is required",
};

/** A project's other settings, and archiving it. */
export function settingPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const page = (visit: ProjectVisit, view: Omit<SettingsView, "visit">) =>
    visit.page("Settings", <Settings visit={visit} {...view} />, {
      section,
      problem: view.problem,
    });
  return {
    show: guard.project((visit) => {
      const { project } = visit;
      const fields = fieldsOf(project);
      return page(visit, {
        values: (name) => fields[name] ?? "",
        seen: fingerprintOf(part, project),
        problem: null,
      });
    }),
    save: guard.project(async (visit) => {
      const form = await visit.form();
      const values: Values = (name) => form.get(name) ?? "";
      const changes = (project: Project) => readSettings(form, project);
      return await orShowFormAgain(
        () => saveSettings(services, visit, { section, part, form, changes }),
        (problem, error) => page(visit, { values, seen: fingerprintAfter(form, error), problem }),
        labels,
      );
    }),
    confirmArchive: guard.project((visit) => archivePage(visit, null)),
    archive: guard.project(async (visit) => {
      const { project, session, here, go } = visit;
      const form = await visit.form();
      if (submittedText(form, "name") !== project.name.trim()) {
        return archivePage(visit, "This is not the project’s name. Nothing was archived.");
      }
      await services.admin.archive(project.id, session.by);
      return go(here(section), "saved");
    }),
  };
}

/** Asks for the project's name: archiving cannot be undone. */
function archivePage({ page, here, project }: ProjectVisit, problem: string | null): Response {
  const says = (
    <>
      <FormError text={problem} />
      <p>
        <strong>
          <bdi>{project.name}</bdi>
        </strong>{" "}
        refuses new calls, charges and deposits from then on: callers get 403. Running calls are
        finished and charged, paid checkouts are recorded, balances and this console remain. It
        cannot be undone.
      </p>
    </>
  );
  const confirm = { says, button: "Archive the project", action: here("/archive") };
  const more = <FormField name="name" label="Type the project’s name" required />;
  return page(
    "Archive this project?",
    <Confirm {...confirm} more={more} back={here(section)} />,
    { section, problem },
  );
}

/** Returns what a field of the form shows. */
type Values = (name: string) => string;

interface SettingsView {
  visit: ProjectVisit;
  values: Values;
  seen: string;
  problem: string | null;
}

/** Returns the form's values for a project. */
function fieldsOf(project: Project): Record<string, string | null> {
  const { name, topUpUrl, topUp, lowBalance, trialCredits, maxOutputTokens } = project;
  return {
    name,
    topUpUrl,
    lowBalance,
    trialCredits,
    maxOutputTokens: String(maxOutputTokens ?? ""),
    amounts: topUp.amounts.join(" "),
    min: topUp.min,
    max: topUp.max,
    checkoutUrl: topUp.checkoutUrl,
    logoUrl: project.brand.logoUrl,
    accent: project.brand.accent,
    supportUrl: project.brand.supportUrl,
    requestLogDays: String(project.requestLogDays),
    keepResponses: keepsTurns(project) ? "on" : "",
    paywallOnJson: project.paywallOnJson === "402" ? "on" : "",
    allowedFields: project.allowedFields.join(" "),
    unknownFields: project.unknownFields === "pass" ? "on" : "",
    billingEvents: project.billingEvents ? "on" : "",
  };
}

/** Returns the fields as `PATCH` would receive them; the schema validates them. */
function readSettings(form: URLSearchParams, project: Project): Record<string, unknown> {
  return {
    name: submittedText(form, "name") ?? "",
    topUpUrl: submittedText(form, "topUpUrl"),
    lowBalance: decimalText(form, "lowBalance"),
    trialCredits: decimalText(form, "trialCredits") ?? "0",
    maxOutputTokens: integerText(form, "maxOutputTokens", labels.maxOutputTokens),
    topUp: {
      amounts: (submittedText(form, "amounts") ?? "").split(/[\s;]+|,\s+/).filter(Boolean).map(
        typedDecimal,
      ),
      min: decimalText(form, "min") ?? project.topUp.min,
      max: decimalText(form, "max") ?? project.topUp.max,
      checkoutUrl: submittedText(form, "checkoutUrl"),
    },
    brand: {
      logoUrl: submittedText(form, "logoUrl"),
      accent: submittedText(form, "accent"),
      supportUrl: submittedText(form, "supportUrl"),
    },
    requestLogDays: integerText(form, "requestLogDays", labels.requestLogDays) ??
      project.requestLogDays,
    keepResponses: form.has("keepResponses") ? "on" : "off",
    paywallOnJson: form.has("paywallOnJson") ? "402" : "message",
    allowedFields: (submittedText(form, "allowedFields") ?? "").split(/[\s,;]+/).filter(Boolean),
    unknownFields: form.has("unknownFields") ? "pass" : "refuse",
    billingEvents: form.has("billingEvents"),
  };
}

function Settings({ visit: { project, here }, values, seen, problem }: SettingsView) {
  const currency = project.currency.toUpperCase();
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ seen }} />
        <FormSection title="General">
          <FormField name="name" label={labels.name} value={values("name")} required />
        </FormSection>
        <CreditFields values={values} currency={currency} />
        <BrandFields values={values} />
        <TopUp values={values} currency={currency} />
        <RequestFields values={values} />
        <FormSection title="Webhooks" says="Whether balance.* and usage.* events are sent.">
          <FormCheckbox
            name="billingEvents"
            label="Send webhooks about balances and usage"
            on={values("billingEvents") !== ""}
          />
        </FormSection>
        <button type="submit" class="primary">Save</button>
      </form>
      <About project={project} here={here} />
      {project.status === "archived" ? null : (
        <Card title="Archive">
          <p>The project then refuses new calls, charges and deposits. It cannot be undone.</p>
          <p>
            <a class="button danger" href={here("/archive")}>Archive this project…</a>
          </p>
        </Card>
      )}
    </>
  );
}

function CreditFields({ values, currency }: { values: Values; currency: string }) {
  return (
    <FormSection title="Balances" says="What new users start with, and when users are warned.">
      <FormField
        name="trialCredits"
        label={`${labels.trialCredits}, ${currency}`}
        value={values("trialCredits")}
        hint="Granted once, with a user’s first operation. 0 for none."
      />
      <FormField
        name="lowBalance"
        label={`${labels.lowBalance}, ${currency}`}
        value={values("lowBalance")}
        hint="Responses then end with a warning and the link. Empty for none."
      />
      <FormCheckbox
        name="paywallOnJson"
        label="Refuse with an error (402) where JSON or a tool is required, not with a message"
        on={values("paywallOnJson") !== ""}
      />
    </FormSection>
  );
}

function RequestFields({ values }: { values: Values }) {
  return (
    <FormSection title="Requests" says="What is sent to the model, and how long requests are kept.">
      <FormField
        name="maxOutputTokens"
        label={labels.maxOutputTokens}
        value={values("maxOutputTokens")}
        hint="Lowers what callers ask for. Empty: no limit but the model’s own."
      />
      <FormField
        name="requestLogDays"
        label={labels.requestLogDays}
        value={values("requestLogDays")}
        hint="0 to 365. 0: nothing is recorded."
      />
      <FormCheckbox
        name="keepResponses"
        label="Keep turns of conversations for 30 days, where the provider keeps none"
        on={values("keepResponses") !== ""}
      />
      <FormField
        name="allowedFields"
        label={labels.allowedFields}
        value={values("allowedFields")}
        hint="Names, separated by spaces. They may cost what users do not pay for."
      />
      <FormCheckbox
        name="unknownFields"
        label="Pass on every unknown field"
        on={values("unknownFields") !== ""}
      />
    </FormSection>
  );
}

function BrandFields({ values }: { values: Values }) {
  return (
    <FormSection title="Brand" says="Your app on the pages where users pay.">
      <FormField
        name="logoUrl"
        label={labels["brand.logoUrl"]}
        type="url"
        value={values("logoUrl")}
        hint="An https URL of a square image. Empty: the first letter of the name."
      />
      <FormField
        name="accent"
        label={labels["brand.accent"]}
        value={values("accent")}
        hint="As #rrggbb. Empty: Farebox’s own."
        more={{ pattern: "#[0-9A-Fa-f]{6}", placeholder: "#1d4fd7" }}
      />
      <FormField
        name="supportUrl"
        label={labels["brand.supportUrl"]}
        value={values("supportUrl")}
        hint="An https or mailto URL."
      />
    </FormSection>
  );
}

function TopUp({ values, currency }: { values: Values; currency: string }) {
  return (
    <FormSection title="Top-up page" says="Where the link in a message leads." id="payments">
      <FormField
        name="amounts"
        label={`${labels["topUp.amounts"]}, ${currency}`}
        value={values("amounts")}
        hint="One to six, separated by spaces."
      />
      <div class="fields">
        <FormField name="min" label={labels["topUp.min"]} value={values("min")} />
        <FormField name="max" label={labels["topUp.max"]} value={values("max")} />
      </div>
      <FormField
        name="checkoutUrl"
        label={labels["topUp.checkoutUrl"]}
        value={values("checkoutUrl")}
        hint="With {user}, {project} and {amount}. Empty for Stripe, if it is connected."
      />
      <FormField
        name="topUpUrl"
        label={labels.topUpUrl}
        type="text"
        value={values("topUpUrl")}
        hint="With the same placeholders. Empty for the hosted page."
      />
    </FormSection>
  );
}

/** The settings that cannot be changed here. */
function About({ project: { id, upstream, stripe, userSource, ownerUserId }, here }: {
  project: Project;
  here: ProjectVisit["here"];
}) {
  return (
    <Card title="Set elsewhere">
      <DetailList
        rows={[
          ["Project", <code>{id}</code>],
          ["Owner", <code>{ownerUserId}</code>],
          [
            "Upstream",
            <a href={here("/upstreams")}>
              {upstream === null ? "The default of this server" : urlOf(upstream)}
            </a>,
          ],
          [
            "Payments",
            <a href={here("/payments")}>Stripe is {stripe === null ? "not " : ""}connected</a>,
          ],
          [
            "User ids",
            userSource === "header" ? "Only from the header" : "From the header or the body",
          ],
        ]}
      />
    </Card>
  );
}
