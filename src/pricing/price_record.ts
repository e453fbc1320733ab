import { ownMember } from "../base/json.ts";
import { memoizeByObject } from "../base/memoize_by_object.ts";
import { formatAmount, unit } from "../base/money.ts";
import { tokenClassRows } from "../base/token_classes.ts";
import { levelOfUse, type Price, requestPrice, type Used, wholePercent } from "./price.ts";
import { usedUnitPrices } from "./units.ts";
import { type PriceLevel, rateOf } from "./price_level.ts";

/**
 * The prices that a response was charged by, as its entry stores them: decimal strings, of tokens
 * per million; those of units
 * as the price has them. Together with the usage they are all that its cost depends on.
 */
export function recordPrice(price: Price, used: Used): Readonly<Record<string, string>> {
  const level = levelOfUse(price, used);
  const usual = recorder(price)(level);
  const { statedPercent } = price;
  const { statedCost, costFactor } = used;
  const isStated = statedPercent !== null && statedCost !== null;
  const calls = Object.keys(used.toolCalls).filter((name) =>
    ownMember(level.toolCalls, name) !== undefined
  );
  const units = level.units && used.units ? [...usedUnitPrices(level.units, used.units)] : [];
  const isUsual = !isStated && calls.length === 0 && units.length === 0 &&
    level.requestBySearchContext === null && costFactor === undefined;
  if (isUsual) return usual;
  const request = requestPrice(level, used.searchContext);
  return {
    ...usual,
    request: formatAmount(request),
    ...Object.fromEntries(
      calls.map((name) => [`toolCalls.${name}`, formatAmount(level.toolCalls[name] ?? 0n)]),
    ),
    ...Object.fromEntries(units.map(([name, amount]) => [name, formatAmount(amount)])),
    ...(isStated
      ? { stated: formatStated(statedCost), markupPercent: formatPercent(statedPercent) }
      : {}),
    ...(costFactor === undefined ? {} : { costFactor: formatAmount(costFactor) }),
  };
}

const recorder = memoizeByObject(({ percent, requestFee, minimum }: Price) =>
  memoizeByObject(({ rates, factor, request }: PriceLevel): Record<string, string> => ({
    ...Object.fromEntries(
      tokenClassRows.filter(({ price, always, within }) =>
        rates[price] !== undefined || (always && within === undefined)
      ).map(({ name, price }) => [price, formatAmount(rateOf(rates, name))]),
    ),
    ...(factor === unit ? {} : { factor: formatAmount(factor) }),
    ...(request > 0n ? { request: formatAmount(request) } : {}),
    ...(minimum > 0n ? { minimum: formatAmount(minimum) } : {}),
    markupPercent: formatPercent(percent),
    requestFee: formatAmount(requestFee),
  }))
);

function formatPercent(percent: bigint): string {
  return formatAmount(percent - wholePercent);
}

/** A stated cost, in 1e-12 units, as a decimal string. */
function formatStated(cost: bigint): string {
  const digits = cost.toString().padStart(13, "0");
  const fraction = digits.slice(-12).replace(/0+$/, "");
  return digits.slice(0, -12) + (fraction ? `.${fraction}` : "");
}
