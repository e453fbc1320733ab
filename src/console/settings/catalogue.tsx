/** @jsxImportSource @hono/hono/jsx */
import { type Amount, fromDecimal, toAmount } from "../../base/money.ts";
import { type PublicPrice, publicPrice } from "../../pricing/public_price.ts";
import type { LastRefresh } from "../../pricing/refresh.ts";
import type { Prices } from "../../pricing/terms.ts";
import type { Project } from "../../projects/schema.ts";
import { FormField } from "../../pages/form_parts.tsx";
import { Badge, ExactMoney, Pager, Table, Tabs } from "../../pages/parts.tsx";
import { PriceMoves } from "./catalogue_refresh.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";

const section = "/pricing";
const perPage = 50;

/** The pages of prices: a project's own, and the catalogue's beside them. */
export function PricingTabs({ here, shown }: {
  here: ProjectVisit["here"];
  shown: "own" | "catalogue";
}) {
  const tabs = [
    { title: "Your prices", href: here(section), shown: shown === "own" },
    { title: "Catalogue", href: here(`${section}/catalogue`), shown: shown === "catalogue" },
  ];
  return <Tabs label="Prices" tabs={tabs} />;
}

/** Returns the catalogue's price of a model, without markup and fee; null where it has none. */
export function listPriceOf(
  prices: Prices,
  project: Project,
  model: string,
  at: number,
): PublicPrice | null {
  return listPrices(prices, project, at)(model);
}

function listPrices(prices: Prices, project: Project, at: number) {
  // As in a project that has no prices of its own.
  const plain = { ...project, pricing: { ...project.pricing, catalogue: true, models: {} } };
  return (model: string): PublicPrice | null => {
    const list = prices.terms(plain, model, at)?.listPrice ?? null;
    return list && publicPrice(list);
  };
}

interface CatalogueRow {
  model: string;
  list: PublicPrice;
  /** Null where the project does not serve the model. */
  own: PublicPrice | null;
  isOwn: boolean;
}

/** Every model of the catalogue: its list price, what users pay, and the margin. */
export function cataloguePage(
  guard: ConsoleGuard,
  { deps, prices, catalogueRefresh }: ConsoleDeps,
) {
  return guard.project((visit) => {
    const { project, page, here, incoming: { query } } = visit;
    const [wanted, after] = [query("q")?.trim() ?? "", query("after") ?? ""];
    const at = deps.clock.now();
    const listPrice = listPrices(prices, project, at);
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const rows: CatalogueRow[] = [];
    const models = prices.catalogueModels(project).map((model) => [model.toLowerCase(), model]);
    for (
      const [low = "", model = ""] of models.sort(([one = ""], [other = ""]) =>
        one < other ? -1 : 1
      )
    ) {
      if (low <= after.toLowerCase() || !words.every((word) => low.includes(word))) continue;
      const list = listPrice(model);
      if (!list) continue;
      const terms = prices.terms(project, model, at);
      const isOwn = terms !== null && !terms.fromCatalogue;
      rows.push({ model, list, own: terms && publicPrice(terms.price), isOwn });
      if (rows.length > perPage) break;
    }
    const shown = rows.slice(0, perPage);
    const next = new URLSearchParams({ q: wanted, after: shown.at(-1)?.model ?? "" });
    const first = new URLSearchParams({ q: wanted });
    const path = here(`${section}/catalogue`);
    return page(
      "Pricing",
      <>
        <PricingTabs here={here} shown="catalogue" />
        <form method="get" action={path} role="search" class="actions end">
          <FormField name="q" label="Find a model" type="search" value={wanted} />
          <button type="submit">Search</button>
        </form>
        <LastRefreshed visit={visit} last={catalogueRefresh.last()} />
        <CatalogueTable visit={visit} rows={shown} />
        <Pager
          older={rows.length > perPage ? `${path}?${next}` : null}
          newest={after === "" ? null : `${path}?${first}`}
          words={{ older: "Next", newest: "First" }}
        />
      </>,
      {
        section,
        note: `List prices of ${prices.catalogueDate}, per million tokens at the standard tier. ` +
          "The margin is a part of what users pay, and assumes 3 input tokens per output token.",
        actions: visit.session.projectId === null
          ? <a class="button small" href={visit.at("/catalogue")}>Refresh the list prices</a>
          : undefined,
      },
    );
  });
}

/** What the last refresh of the list prices has changed. */
function LastRefreshed({ visit: { here }, last }: {
  visit: ProjectVisit;
  last: LastRefresh | null;
}) {
  if (last === null) return null;
  const { date, changed, models } = last;
  const many = changed === 1 ? "1 list price" : `${changed.toLocaleString("en-US")} list prices`;
  const linkOf = (model: string) =>
    here(`${section}/catalogue?${new URLSearchParams({ q: model })}`);
  return (
    <details class="card">
      <summary>The refresh of {date} changed {many}</summary>
      <PriceMoves moves={models} of={changed} linkOf={linkOf} />
    </details>
  );
}

function CatalogueTable({ visit: { project, here }, rows }: {
  visit: ProjectVisit;
  rows: readonly CatalogueRow[];
}) {
  const money = (text: string) => (
    <ExactMoney amount={fromDecimal(text)} currency={project.currency} />
  );
  const pair = (price: PublicPrice | null, field: "input" | "output") =>
    price === null ? "–" : money(price.perMillion[field]);
  return (
    <Table
      caption="Input and output"
      columns={[
        "Model",
        { title: "List, input", number: true },
        { title: "List, output", number: true },
        { title: "Users pay, input", number: true },
        { title: "Users pay, output", number: true },
        { title: "Margin", number: true, lead: true },
        { title: "Change", phone: "right" },
      ]}
      rows={rows.map(({ model, list, own, isOwn }) => [
        <>
          {model} {isOwn ? <Badge>own price</Badge> : null}
        </>,
        pair(list, "input"),
        pair(list, "output"),
        pair(own, "input"),
        pair(own, "output"),
        own === null ? <Badge>not served</Badge> : marginOf(list, own),
        <a href={here(`${section}?model=${encodeURIComponent(model)}`)}>
          Set a price<span class="hidden">{` of ${model}`}</span>
        </a>,
      ])}
      empty={project.currency === "usd"
        ? "The catalogue has no such model."
        : "The catalogue is in US dollars: this project sets its own prices."}
    />
  );
}

/** The part of what users pay that is not the provider's, in percent. */
function marginOf(list: PublicPrice, own: PublicPrice): string {
  const blended = ({ perMillion: { input, output } }: PublicPrice): Amount =>
    toAmount(3n * fromDecimal(input) + fromDecimal(output));
  const [cost, paid] = [blended(list), blended(own)];
  if (paid === 0n) return cost === 0n ? "0 %" : "–";
  return `${((Number(paid - cost) / Number(paid)) * 100).toFixed(1)} %`;
}
