import { type Amount, formatAmount, toAmount, zero } from "../base/money.ts";
import { decodeBudget } from "../store/budgets.ts";
import { accountKey, budgetsPrefix, holdingPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import {
  countRows,
  pagesUnder,
  readOrNull,
  type Scan,
  type ScanCounts,
  scanRows,
  verifyAtRest,
} from "../store/scan.ts";
import { accountLocation } from "./account.ts";
import { parseHoldIndexRow, parseStoredAccount } from "./verify_schemas.ts";

const budgetsPerRead = 20;
const holdersPerRead = 100;

/** Verifies all budgets: each holds what running calls hold of it. */
export function scanBudgets({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "budgets",
    kv,
    prefix: budgetsPrefix,
    rowsPerRead: budgetsPerRead,
    async look(rows, counts) {
      countRows(counts, "budgets", rows.length);
      const faults: string[] = [];
      for (const { key } of rows) {
        faults.push(...await verifyAtRest(kv, { key, counts }, (row) => faultsOf(kv, row, counts)));
      }
      return faults;
    },
  });
}

async function faultsOf(kv: Kv, { key, value }: Row, counts: ScanCounts): Promise<string[]> {
  const [, projectId, name] = key.map(String);
  const about = `budget ${name} of ${projectId}`;
  const budget = readOrNull(value, decodeBudget);
  if (!budget) return [`${about} cannot be read`];
  const held = await heldOf(kv, String(name), counts);
  if (held === budget.held) return [];
  return [
    `${about} holds ${formatAmount(budget.held)}, but running calls hold ${formatAmount(held)}`,
  ];
}

/** What all calls hold of a budget. A call's hold changes in one write with the budget. */
async function heldOf(kv: Kv, name: string, counts: ScanCounts): Promise<Amount> {
  let held = zero;
  // A wallet has a row for each of its connections, on more than one page perhaps.
  const seen = new Set<string>();
  for await (const rows of pagesUnder(kv, holdingPrefix, holdersPerRead)) {
    countRows(counts, "budgetHolders", rows.length);
    const places = rows.flatMap(({ value }) => {
      const ref = readOrNull(value, parseHoldIndexRow);
      if (!ref) return [];
      const { owner, name } = accountLocation(ref);
      const place = `${owner}\0${name}`;
      if (seen.has(place)) return [];
      seen.add(place);
      return [accountKey(owner, name)];
    });
    for (const { value } of await kv.getMany(places)) {
      const account = readOrNull(value, parseStoredAccount);
      for (const { budgets } of account?.holds ?? []) {
        for (const [budget, amount] of budgets) {
          if (budget === name) held = toAmount(held + amount);
        }
      }
    }
  }
  return held;
}
