import type { TokenCause } from "../../base/token_classes.ts";
import type { PricedCall } from "../../pricing/price.ts";
import type { ModelTerms } from "../../pricing/terms.ts";
import type { ModelRequest, PriceCoverage } from "../model_request.ts";

/** Tool calls to hold money for where neither the request nor the project bounds them. */
export const toolCallsHeld = 10;

/** The parts of a request that a price covers, at the standard tier. */
export function coverageOf(
  { price: { table: { standard, serviceTiers } }, fromCatalogue }: Pick<
    ModelTerms,
    "price" | "fromCatalogue"
  >,
): PriceCoverage {
  const { rates, toolCalls, request, requestBySearchContext, units } = standard.base;
  return {
    serviceTier: (name) => serviceTiers.has(name),
    tool: (name) => Object.hasOwn(toolCalls, name),
    field: (price) => rates[price] !== undefined,
    request: request > 0n || requestBySearchContext !== null,
    units,
    isListed: fromCatalogue,
  };
}

/** A call as its price is bounded: the service tiers, token classes and tools that it can cause. */
export function pricedCall(
  { extras, units }: ModelRequest,
  { price, maxToolCalls }: ModelTerms,
  { hasMedia }: { hasMedia: boolean },
): PricedCall {
  const { table: { serviceTiers } } = price;
  const { serviceTier } = extras;
  const tiers = serviceTier === "auto"
    ? [...serviceTiers.keys()]
    : serviceTier !== null && serviceTiers.has(serviceTier)
    ? [serviceTier]
    : [];
  return {
    price,
    serviceTiers: tiers,
    causes: causesOf(extras, hasMedia),
    toolCalls: maxToolCalls ?? extras.maxToolCalls ??
      (extras.hostedTools.length > 0 ? toolCallsHeld : 0),
    searchContext: extras.searchContext,
    units: units ?? null,
  };
}

const usualCauses: readonly TokenCause[] = ["imageOutput"];

function causesOf(extras: ModelRequest["extras"], hasMedia: boolean): readonly TokenCause[] {
  const isUsual = !hasMedia && !extras.hourCache && extras.hostedTools.length === 0 &&
    extras.modalities === null;
  if (isUsual) return usualCauses;
  const causes: TokenCause[] = [];
  if (hasMedia) causes.push("media");
  if (extras.hourCache) causes.push("hourCache");
  if (extras.hostedTools.length > 0) causes.push("tools");
  if (extras.modalities?.includes("audio")) causes.push("audioOutput");
  if (extras.modalities?.includes("image") ?? true) causes.push("imageOutput");
  return causes;
}
