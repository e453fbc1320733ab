import { formatAmount, zero } from "../../base/money.ts";
import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { countAttemptHourly } from "../../summaries/hourly_counters.ts";
import type { AdmittedCall } from "../call.ts";
import { billOf, type CallBill } from "../meter/bill.ts";
import type { InferenceServices } from "../services.ts";

type Services = Pick<InferenceServices, "deps" | "prices">;

/** Counts a call that was charged; `bill` is null where none could be made. */
export function countCharged(
  services: Services,
  call: AdmittedCall,
  { usage, bill }: { usage: TokenUsage; bill: CallBill | null },
): void {
  call.permit.count(inputTokensOf(usage) + outputTokensOf(usage));
  if (call.isRouted) countAttempts(services, call, bill);
}

/** Counts a call that was not charged, with its known cost for the project. */
export async function countReleased(services: Services, call: AdmittedCall): Promise<void> {
  if (!call.isRouted) return;
  const { meter } = call.attempt;
  const known = meter.reported && billOf(services, call, await meter.usage());
  countAttempts(services, call, known && { ...known, cost: zero });
}

/** Counts the attempts of a call that has ended; `bill` is null where the call was not charged. */
function countAttempts(
  { deps: { committer, clock, metrics } }: Services,
  { attempt: { target, firstTokenMs }, failed, caller }: AdmittedCall,
  bill: CallBill | null,
): void {
  const { id: projectId, currency } = caller.snapshot.project;
  const { cost: amount = zero, upstreamCost = null } = bill ?? {};
  const before = failed.map((attempt) => ({ ...attempt, firstTokenMs: null, amount: zero }));
  for (const attempt of [...before, { target, firstTokenMs, amount, upstreamCost }]) {
    const { target: { upstream: { name: upstream }, model }, upstreamCost: known } = attempt;
    const cost = known ?? zero;
    if (cost > zero) metrics.target(upstream).cost(currency).add(Number(formatAmount(cost)));
    const counted = { ...attempt, projectId, upstream, model, upstreamCost: cost, at: clock.now() };
    committer.count(countAttemptHourly(counted));
  }
}
