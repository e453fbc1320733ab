import { type EntryKind, entryKindNames } from "../base/entry_kinds.ts";
import { type StoredTokens, tokenClassRows } from "../base/token_classes.ts";
import type { MetricCounter, MetricsRegistry } from "./registry.ts";

/** The part of an entry that is counted; amounts are decimal strings. */
interface CountedEntry {
  kind: EntryKind;
  /** Of a charge that is no use, another one than `charge`. */
  reason?: string;
  delta: string;
  shortfall: string;
  usage: Partial<StoredTokens> | null;
}

/**
 * The kinds whose entries move money: archiving writes `carried` ones, and moves none. Charges that
 * are no use are apart, so that revenue can be computed.
 */
const movingKinds = [...entryKindNames.filter((kind) => kind !== "carried"), "other_charge"];

const forGraphs = "in units of the currency: a float, for graphs; the ledger is exact";

/** Counts entries once they are stored. Currencies are those that the runtime knows. */
export function createEntryMetrics(
  page: MetricsRegistry,
  holdExpired: MetricCounter,
): (entry: CountedEntry, currency: string) => void {
  const moved = page.counters({
    name: "farebox_money_total",
    help: `Added to (in) or taken from (out) balances by kind of entry, ${forGraphs}`,
    labels: ["kind", "direction", "currency"],
  });
  const shortfall = page.counters({
    name: "farebox_shortfall_total",
    help: `What was due and could not be collected, ${forGraphs}`,
    labels: ["currency"],
  });
  const tokens = page.countersBy({
    name: "farebox_tokens_total",
    help: "Tokens charged, by class; reasoning is inside output as well",
    label: "class",
    values: tokenClassRows.map(({ metric }) => metric),
  });
  const known = new Map<string, Record<string, MetricCounter>>();

  function open(currency: string): Record<string, MetricCounter> {
    const made: Record<string, MetricCounter> = { shortfall: shortfall({ currency }) };
    for (const kind of movingKinds) {
      for (const direction of ["in", "out"]) {
        made[`${direction} ${kind}`] = moved({ kind, direction, currency });
      }
    }
    known.set(currency, made);
    return made;
  }

  return (entry, currency) => {
    const money = known.get(currency) ?? open(currency);
    const amount = Number(entry.delta);
    const direction = amount < 0 ? "out" : "in";
    const { kind, reason } = entry;
    const name = kind === "charge" && reason && reason !== "charge" ? "other_charge" : kind;
    money[`${direction} ${name}`]?.add(Math.abs(amount));
    money.shortfall?.add(Math.max(0, Number(entry.shortfall)));
    if (entry.kind === "expired") holdExpired.add();
    const { usage } = entry;
    if (!usage) return;
    for (const { metric, field } of tokenClassRows) {
      const count = usage[field] ?? 0;
      if (count > 0) tokens[metric]?.add(count);
    }
  };
}
