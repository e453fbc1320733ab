import { csvLine } from "../base/csv.ts";
import { movementColumns } from "../base/entry_reasons.ts";
import type { Statement, StatementRow } from "./statement.ts";
import type { BalanceAt } from "./statement.ts";

const movements = movementColumns.map(({ name }) => name);
const columns = [
  ...["row", "opening", ...movements, "closing", "revenue", "calls", "callsWithUnknownCost"],
  ...["cost", "margin", "note"],
];

/** A statement as CSV: its rows, their total, and a row that tells whether they add up. */
export function statementToCsv({ rows, total, check, ...about }: Statement): string {
  const span = [about.from, about.to].map((ms) => new Date(ms).toISOString()).join(" to ");
  const note = `${about.currency}; ${span}, exclusive; time zone ${about.timeZone}; ` +
    "amounts are exact, nothing is rounded";
  const ofCheck = check && csvLine([
    ...["check", check.opening, ...movements.map(() => null), check.closing],
    ...[null, null, null, null, null],
    `movements ${check.movements}; difference ${check.difference}`,
  ]);
  return [
    csvLine([about.group, ...columns.slice(1)]),
    ...rows.map((row) => lineOf(row.group, row, null)),
    lineOf("total", total, note),
    ofCheck ?? "",
  ].join("");
}

function lineOf(name: string, row: StatementRow, note: string | null): string {
  return csvLine([
    ...[name, row.opening ?? null, ...movements.map((column) => row.movements[column] ?? "0")],
    ...[row.closing ?? null, row.revenue, String(row.calls), String(row.callsWithUnknownCost)],
    ...[row.cost, row.margin, note],
  ]);
}

/** Balances at an instant as CSV, with their total as the last line. */
export function balancesToCsv(balances: readonly BalanceAt[], total: string): string {
  const lines = balances.map(({ user, balance }) => csvLine(["user", user, balance]));
  return [csvLine(["row", "user", "balance"]), ...lines, csvLine(["total", null, total])].join("");
}
