import { type Amount, toAmount, zero } from "../base/money.ts";

/** An amount at a time, in ms since 1970. */
export interface AmountAt {
  start: number;
  amount: Amount;
}

/** Adds amounts up by the steps of a period, oldest first. */
export function amountSteps(
  amounts: readonly AmountAt[],
  { from, to, stepMs }: { from: number; to: number; stepMs: number },
): AmountAt[] {
  const steps: AmountAt[] = [];
  for (let start = from; start < to; start += stepMs) steps.push({ start, amount: zero });
  for (const { start, amount } of amounts) {
    const step = steps[Math.floor((start - from) / stepMs)];
    if (step) step.amount = toAmount(step.amount + amount);
  }
  return steps;
}
