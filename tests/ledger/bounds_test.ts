import assert from "node:assert/strict";
import { type Amount, toAmount } from "../../src/base/money.ts";
import {
  leftIn,
  refusalBy,
  type SpendingBound,
  withoutOwnHoldsIn,
} from "../../src/ledger/bounds.ts";

const amount = (value: number): Amount => toAmount(BigInt(value));
const fits = (asked: number) => (most: Amount) => amount(asked) <= most;
const bound = (
  left: number,
  withoutOwnHolds: number,
  refusal: SpendingBound["refusal"],
): SpendingBound => ({
  left: amount(left),
  withoutOwnHolds: amount(withoutOwnHolds),
  refusal,
});
const balance = bound(60, 100, "insufficient_funds");

Deno.test("bounds: the narrowest decides how much is left", () => {
  const bounds = [balance, bound(70, 70, "daily_cap"), bound(40, 80, "project_limit")];
  assert.equal(leftIn(bounds), amount(40));
  assert.equal(withoutOwnHoldsIn(bounds), amount(70));
});

Deno.test("bounds: the first in the list that is too narrow gives the reason", () => {
  const bounds = [balance, bound(30, 50, "daily_cap"), bound(10, 20, "project_limit")];
  assert.equal(refusalBy(bounds, fits(101)), "insufficient_funds");
  assert.equal(refusalBy(bounds, fits(51)), "daily_cap");
  assert.equal(refusalBy(bounds, fits(21)), "project_limit");
});

Deno.test("bounds: an amount that only the user's own calls stop is held by them", () => {
  assert.equal(refusalBy([balance, bound(40, 80, "project_limit")], fits(80)), "held_by_running");
});

Deno.test("bounds: a budget throws, and not before what comes first in the list", () => {
  const spent = new Error("the budget is used up");
  const budget = bound(20, 20, () => spent);
  assert.throws(() => refusalBy([balance, budget], fits(30)), spent);
  // It would stop the amount once the user's own calls have ended.
  assert.throws(() => refusalBy([balance, budget], fits(80)), spent);
  assert.equal(refusalBy([balance, budget], fits(101)), "insufficient_funds");
});
