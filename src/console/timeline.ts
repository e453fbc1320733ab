import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import { type Amount, toAmount, zero } from "../base/money.ts";
import type { SummaryTotals } from "../summaries/summary.ts";

/** What happened in one step of a period. */
export interface TimeStep {
  /** In milliseconds since 1970. */
  start: number;
  requests: number;
  failed: number;
  refused: number;
  input: number;
  output: number;
  /** What users were charged: for responses and by manual charges. */
  charged: Amount;
}

/** Returns the steps of a period, oldest first. */
export function timeSteps(
  hours: readonly { start: number; totals: SummaryTotals }[],
  { from, to, stepMs }: { from: number; to: number; stepMs: number },
): TimeStep[] {
  const steps: TimeStep[] = [];
  for (let start = from; start < to; start += stepMs) steps.push(emptyStep(start));
  for (const { start, totals } of hours) {
    const step = steps[Math.floor((start - from) / stepMs)];
    if (step) addTo(step, totals);
  }
  return steps;
}

function emptyStep(start: number): TimeStep {
  const counts = { requests: 0, failed: 0, refused: 0, input: 0, output: 0 };
  return { start, ...counts, charged: zero };
}

function addTo(step: TimeStep, totals: SummaryTotals): void {
  step.requests += totals.requests;
  step.failed += totals.failed;
  step.refused += totals.refused;
  step.input += inputTokensOf(totals);
  step.output += outputTokensOf(totals);
  step.charged = toAmount(step.charged + chargedAmount(totals));
}

/** Returns what users were charged: for responses and by manual charges. */
export function chargedAmount({ cost, charges }: SummaryTotals): Amount {
  return toAmount(cost + charges);
}
