import { ApiError } from "../base/errors.ts";
import { type Amount, formatAmount, fromDecimal, toAmount } from "../base/money.ts";
import { keySpendKey } from "../store/keys.ts";
import type { Budget, BudgetUse } from "../store/budgets.ts";
import type { Key, Kv } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";
import { decodeSum } from "../store/sums.ts";
import type { ApiKey } from "./schema.ts";

/** A key, as far as its budget needs it. */
export type BudgetedKey = Pick<ApiKey, "id" | "budget">;

/** The refusal, for the API documentation. */
export const keyBudgetReached = {
  status: 403,
  code: "key_budget_reached",
  when: "The key's budget leaves too little for the request.",
} as const;

const noBudgets: readonly Budget[] = [];

/** The budgets that what a key spends counts toward: its own, or none. */
export function budgetsOfKey(
  kv: Kv,
  projectId: string,
  { id: name, budget }: BudgetedKey,
): readonly Budget[] {
  if (budget === null) return noBudgets;
  const spentBefore = () => spentIn0_9_0(kv, keySpendKey(projectId, name));
  const refusal = ({ spent, held }: BudgetUse) => budgetReached(budget, { spent, held });
  return [{ projectId, name, cap: fromDecimal(budget), spentBefore, refusal }];
}

function budgetReached(budget: string, { spent, held }: BudgetUse): ApiError {
  const running = held > 0n ? ` Its running calls hold ${formatAmount(held)} more.` : "";
  return new ApiError(403, {
    message: `This API key has spent ${formatAmount(spent)} of its budget of ${budget}.${running}`,
    type: "permission_error",
    code: keyBudgetReached.code,
  });
}

const rowsPerRead = 500;

/** What a key had spent in 0.9.0, where each process kept a row. Version 1.1 may drop it. */
async function spentIn0_9_0(kv: Kv, rowsOfKey: Key): Promise<Amount> {
  let spent = 0n;
  for await (const rows of pagesUnder(kv, rowsOfKey, rowsPerRead)) {
    for (const { value } of rows) spent += (value && decodeSum(value).get("spent")?.[0]) ?? 0n;
  }
  return toAmount(spent);
}
