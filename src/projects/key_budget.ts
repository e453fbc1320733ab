import { ApiError } from "../base/errors.ts";
import { type Amount, formatAmount, fromDecimal, toAmount } from "../base/money.ts";
import { keySpendKey } from "../store/keys.ts";
import type { Increment, Kv } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";
import { decodeSum } from "../store/sums.ts";
import type { ApiKey } from "./schema.ts";

/** A key, as far as its budget needs it. */
export type BudgetedKey = Pick<ApiKey, "id" | "budget"> & { projectId: string };

/** The refusal, for the API documentation. */
export const keyBudgetReached = {
  status: 403,
  code: "key_budget_reached",
  when: "The key has used up its budget.",
} as const;

const field = "spent";
/** Every process has a row of its own. */
const rowsPerRead = 500;

/** What a key has spent so far: by calls of models, and by charges. */
export async function keySpent(kv: Kv, { projectId, id }: BudgetedKey): Promise<Amount> {
  let spent = 0n;
  for await (const rows of pagesUnder(kv, keySpendKey(projectId, id), rowsPerRead)) {
    for (const { value } of rows) spent += (value && decodeSum(value).get(field)?.[0]) ?? 0n;
  }
  return toAmount(spent);
}

/**
 * Throws 403 where a key's budget is used up, or would not cover `amount`. A call of a model that
 * begins below the budget is completed, so that it may end somewhat above it.
 */
export async function requireKeyBudget(
  kv: Kv,
  key: BudgetedKey,
  amount: Amount | null,
): Promise<void> {
  if (key.budget === null) return;
  const budget = fromDecimal(key.budget);
  const spent = await keySpent(kv, key);
  if (amount === null ? spent < budget : spent + amount <= budget) return;
  throw new ApiError(403, {
    message: `This API key has spent ${formatAmount(spent)} of its budget of ${key.budget}.`,
    type: "permission_error",
    code: keyBudgetReached.code,
  });
}

/** What an amount adds to a key's spending; nothing for a key without a budget. */
export function countKeySpend(key: BudgetedKey, amount: Amount): Increment[] {
  if (key.budget === null) return [];
  return [{ key: keySpendKey(key.projectId, key.id), field, values: [amount] }];
}
