import { type Amount, formatAmount, toAmount, zero } from "../../base/money.ts";
import { decodeBudget } from "../../store/budgets.ts";
import { accountKey, budgetsPrefix, holdingPrefix } from "../../store/keys.ts";
import type { Kv, Row } from "../../store/kv.ts";
import {
  countRows,
  pagesUnder,
  readOrNull,
  type Scan,
  type ScanCounts,
  scanRows,
  verifyAllAtRest,
} from "../../store/scan.ts";
import { accountLocation } from "../account.ts";
import { parseHoldIndexRow, parseStoredAccount } from "./schemas.ts";

const budgetsPerRead = 1_000;
const holdersPerRead = 100;

/**
 * Verifies all budgets: each holds what running calls hold of it. The running calls are read once
 * for a thousand budgets.
 */
export function scanBudgets({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "budgets",
    kv,
    prefix: budgetsPrefix,
    rowsPerRead: budgetsPerRead,
    async look(rows, counts) {
      countRows(counts, "budgets", rows.length);
      if (rows.length === 0) return [];
      const keys = rows.map(({ key }) => key);
      return await verifyAllAtRest(kv, { keys, counts }, async (again) => {
        const held = await heldByBudget(kv, counts);
        return again.map((row) => faultsOf(row, held));
      });
    },
  });
}

function faultsOf({ key, value }: Row, held: ReadonlyMap<string, Amount>): string[] {
  const [, projectId, name] = key.map(String);
  const about = `budget ${name} of ${projectId}`;
  const budget = readOrNull(value, decodeBudget);
  if (!budget) return [`${about} cannot be read`];
  const byCalls = held.get(String(name)) ?? zero;
  if (byCalls === budget.held) return [];
  return [
    `${about} holds ${formatAmount(budget.held)}, but running calls hold ${formatAmount(byCalls)}`,
  ];
}

/**
 * The amounts that all calls hold of each budget. A call's hold changes in one write with its
 * budgets.
 */
async function heldByBudget(kv: Kv, counts: ScanCounts): Promise<Map<string, Amount>> {
  const held = new Map<string, Amount>();
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
        for (const [name, amount] of budgets) {
          held.set(name, toAmount((held.get(name) ?? zero) + amount));
        }
      }
    }
  }
  return held;
}
