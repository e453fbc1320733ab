/** @jsxImportSource @hono/hono/jsx */
import { createHash } from "node:crypto";
import { badRequest } from "../../base/errors.ts";
import { canonicalJson } from "../../base/json.ts";
import { fromDecimal } from "../../base/money.ts";
import { FormError, Hidden } from "../../pages/form_parts.tsx";
import { Badge, Card, ExactMoney, Table } from "../../pages/parts.tsx";
import { type CataloguePrices, readCatalogueFile } from "../../pricing/catalogue_file.ts";
import type { LastRefresh, PriceChange } from "../../pricing/refresh.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { orShowFormAgain } from "../submitted_fields.ts";
import { type ConsoleGuard, type ConsoleVisit, requireOperator } from "../guard.tsx";

/** How large the form may be, with the file in it. */
export const catalogueFormBytesMax = 8 * 1024 * 1024;
const shownMax = 200;

/** Refreshing the list prices from a file, for operators: its difference first, then the prices. */
export function catalogueRefreshPages(
  guard: ConsoleGuard,
  { deps, catalogue, catalogueRefresh }: ConsoleDeps,
) {
  const show = (visit: ConsoleVisit, problem: string | null) => {
    const view = { visit, problem, last: catalogueRefresh.last() };
    const note =
      `List prices of ${catalogue.date}, which projects without prices of their own use.`;
    return visit.page("Price catalogue", <RefreshForm {...view} />, { problem, note });
  };
  async function receive(visit: ConsoleVisit): Promise<Response> {
    const form = await visit.form();
    const seen = form.get("seen");
    const prices = readPrices(form.get("file") ?? "", deps.clock.now());
    const changes = await catalogueRefresh.diff(prices);
    if (seen !== null && changes.length === 0) {
      // After a double click, the first one stored them.
      return visit.go(visit.at("/catalogue"), "prices-refreshed");
    }
    if (seen === fingerprintOf(changes)) {
      await catalogueRefresh.refresh(prices, visit.session.by);
      return visit.go(visit.at("/catalogue"), "prices-refreshed");
    }
    const problem = seen === null
      ? null
      : "The catalogue has changed since you opened this page. This is the difference now.";
    const view = { visit, prices, changes, problem };
    return visit.page("Refresh the list prices", <Preview {...view} />, { problem });
  }

  return {
    show: guard.signedIn((visit) => {
      requireOperator(visit);
      return show(visit, null);
    }),
    receive: guard.signedIn((visit) => {
      requireOperator(visit);
      return orShowFormAgain(() => receive(visit), (problem) => show(visit, problem));
    }),
  };
}

function readPrices(text: string, at: number): CataloguePrices {
  if (text === "") throw badRequest("file", "Choose a price file.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badRequest("file", "The file is not JSON.");
  }
  return readCatalogueFile(value, at);
}

/** What the visitor has seen: prices must not change unseen. */
function fingerprintOf(changes: readonly PriceChange[]): string {
  const text = canonicalJson(changes.map((change) => ({ ...change })));
  return createHash("sha256").update(text).digest("base64url");
}

function RefreshForm({ visit, problem, last }: {
  visit: ConsoleVisit;
  problem: string | null;
  last: LastRefresh | null;
}) {
  return (
    <>
      <FormError text={problem} />
      <Card
        title="Refresh the list prices"
        note="You see what changes before anything does."
      >
        <form method="post" enctype="multipart/form-data" action={visit.at("/catalogue")}>
          <div class="field">
            <label for="file">Price file</label>
            <input
              id="file"
              name="file"
              type="file"
              accept=".json,application/json"
              required
              aria-describedby="file-hint"
            />
            <span class="hint" id="file-hint">
              JSON: Farebox’s own form, or the list that genai-prices publishes
            </span>
          </div>
          <button type="submit" class="primary">Show what changes</button>
        </form>
      </Card>
      {last === null ? null : (
        <Card title="Last refresh" note={`Prices of ${last.date}`}>
          <PriceMoves moves={last.models} of={last.changed} />
        </Card>
      )}
    </>
  );
}

function Preview({ visit, prices, changes, problem }: {
  visit: ConsoleVisit;
  prices: CataloguePrices;
  changes: readonly PriceChange[];
  problem: string | null;
}) {
  const moves = changes.slice(0, shownMax).map((change) => ({
    ...change,
    others: othersOf(change),
  }));
  return (
    <>
      <FormError text={problem} />
      <PriceMoves moves={moves} of={changes.length} />
      <div class="actions">
        {changes.length === 0
          ? null
          : (
            <form method="post" enctype="multipart/form-data" action={visit.at("/catalogue")}>
              <Hidden fields={{ file: JSON.stringify(prices), seen: fingerprintOf(changes) }} />
              <button type="submit" class="primary">
                {changes.length === 1 ? "Change 1 price" : `Change ${count(changes.length)} prices`}
              </button>
            </form>
          )}
        <a class="button plain" href={visit.at("/catalogue")}>Cancel</a>
      </div>
    </>
  );
}

/** The prices besides input and output that differ, by name. */
function othersOf({ before, after }: PriceChange): string[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const differs = (name: string) =>
    canonicalJson(Reflect.get(before ?? {}, name) ?? null) !==
      canonicalJson(Reflect.get(after ?? {}, name) ?? null);
  return [...names].filter((name) => name !== "input" && name !== "output" && differs(name));
}

const count = (value: number) => value.toLocaleString("en-US");

/** How a model's list prices change. */
interface PriceMove {
  provider: string;
  model: string;
  before: { input: string; output: string } | null;
  after: { input: string; output: string } | null;
  /** Other prices that change, by name. */
  others?: readonly string[];
}

/** Changed list prices per million tokens: `of` in all, of which these are the first. */
export function PriceMoves({ moves, of, linkOf }: {
  moves: readonly PriceMove[];
  of: number;
  /** Where a model leads. */
  linkOf?: (model: string) => string;
}) {
  const money = (text: string) => <ExactMoney amount={fromDecimal(text)} currency="usd" />;
  const move = (before: string | undefined, after: string | undefined) =>
    before === undefined || before === after
      ? money(after ?? "0")
      : <>{money(before)} → {after === undefined ? "none" : money(after)}</>;
  const only = moves.length < of ? ` These are the first ${moves.length} of ${count(of)}.` : "";
  const isWide = moves.some(({ others = [] }) => others.length > 0);
  return (
    <Table
      caption={`Per million tokens.${only}`}
      columns={[
        { title: "Model", lead: true },
        "Provider",
        { title: "Input", number: true },
        { title: "Output", number: true },
        ...(isWide ? ["Also changed"] : []),
      ]}
      rows={moves.map(({ provider, model, before, after, others = [] }) => [
        <>
          {linkOf === undefined ? model : <a href={linkOf(model)}>{model}</a>}{" "}
          {before === null ? <Badge>new</Badge> : null}
          {after === null ? <Badge tone="late">no price</Badge> : null}
        </>,
        provider,
        move(before?.input, after?.input),
        move(before?.output, after?.output),
        ...(isWide ? [others.length === 0 ? "–" : others.join(", ")] : []),
      ])}
      empty="Every price is as before."
    />
  );
}
