import { type Amount, fromDecimal, toAmount, zero } from "../../base/money.ts";
import {
  costOfUse,
  type Price,
  pricesOnlyUnits,
  statedForCost,
  type Used,
} from "../../pricing/price.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { usedUnits } from "../../pricing/units.ts";
import type { CallTarget } from "../attempt.ts";
import type { InferenceCall } from "../call.ts";
import type { InferenceServices } from "../services.ts";
import type { UsageMeter } from "./usage_meter.ts";

/** What a call costs, and by which price. */
export interface CallBill {
  price: Price;
  used: Used;
  cost: Amount;
  /** What the response costs by its provider's price list; null where that is not known. */
  upstreamCost: Amount | null;
}

/** What a bill depends on. */
interface BilledCall extends Pick<InferenceCall, "receivedAt" | "caller" | "cache"> {
  held: Amount;
  attempt: { meter: UsageMeter; target: CallTarget };
}

/** A stated cost is charged up to so many times the hold, and always up to five hundredths. */
const statedFactor = 10n;
const statedAlways = fromDecimal("0.05");

/** Returns what the call costs with this usage: by the model and the tier that answered. */
export function billOf(
  { prices }: Pick<InferenceServices, "prices">,
  { held, receivedAt: at, caller: { snapshot: { project } }, cache, attempt }: BilledCall,
  usage: TokenUsage,
): CallBill {
  const { meter, target: { input, terms, model, target: { place } } } = attempt;
  const { toolCalls, searchContext, serviceTier, statedCost } = meter.extras;
  const served = meter.servedModel ?? model;
  // Units are priced by the request: a served model may have no price for them.
  const { price, listPrice } = served === model || input.units
    ? terms
    : prices.servedTerms(project, { requested: model, served, terms, place, at });
  const used: Used = {
    counts: usage,
    toolCalls,
    searchContext: searchContext ?? input.extras.searchContext,
    ...(input.units && meter.producedOutput
      ? { units: usedUnits(input.units, meter.units, price.table.standard.base.units) }
      : {}),
    producedOutput: meter.producedOutput,
    serviceTier: meter.servedTier ?? serviceTier ?? input.extras.serviceTier,
    statedCost: statedUpTo(price, statedCost, held),
    ...(cache?.hit ? { costFactor: cache.costFactor } : {}),
  };
  const cost = costOfUse(price, used);
  // A list without the unit's price would state a cost of zero.
  const isListed = listPrice && (!input.units || !pricesOnlyUnits(price));
  const upstreamCost = isListed ? costOfUse(listPrice, used) : null;
  return { price, used, cost, upstreamCost: cache?.hit ? zero : upstreamCost };
}

/** A cost that the provider states, lowered to the most that is charged of one. */
function statedUpTo(price: Price, stated: bigint | null, held: Amount): bigint | null {
  if (stated === null || price.statedPercent === null) return stated;
  const most = statedFactor * held > statedAlways ? statedFactor * held : statedAlways;
  const bound = statedForCost(price.statedPercent, toAmount(most));
  return stated < bound ? stated : bound;
}
