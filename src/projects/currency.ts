import { dollarIn } from "./currency_worth.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, unit } from "../base/money.ts";

// https://docs.stripe.com/currencies: amounts are in the smallest unit. These currencies have none,
// or three digits of which the last must be zero.
const zeroDecimalCurrencies = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(
  " ",
);
const threeDecimalCurrencies = "bhd jod kwd omr tnd".split(" ");
/** Currencies that no longer have a smaller unit, but are still stated in hundredths at Stripe. */
const wholeUnitCurrencies = ["isk", "ugx"];

/** The least that Stripe charges; for other currencies it depends on the account. */
const stripeMinimums: Readonly<Record<string, string>> = {
  ...{ usd: "0.5", aed: "2", aud: "0.5", bgn: "1", brl: "0.5", cad: "0.5", chf: "0.5", czk: "15" },
  ...{ dkk: "2.5", eur: "0.5", gbp: "0.3", hkd: "4", huf: "175", inr: "0.5", jpy: "50", mxn: "10" },
  ...{ myr: "2", nok: "3", nzd: "0.5", pln: "2", ron: "2", sek: "3", sgd: "0.5", thb: "10" },
};

/** Returns how many of Stripe's units make one of the currency. */
export function unitsPerOne(currency: string): bigint {
  if (zeroDecimalCurrencies.includes(currency)) return 1n;
  return threeDecimalCurrencies.includes(currency) ? 1000n : 100n;
}

/** Returns the smallest step that can be paid at Stripe, in its units. */
export function unitsPerStep(currency: string): bigint {
  if (wholeUnitCurrencies.includes(currency)) return 100n;
  return threeDecimalCurrencies.includes(currency) ? 10n : 1n;
}

/** The amounts that can be paid in a currency. */
interface Payable {
  /** Every amount is a multiple of it. */
  step: Amount;
  /** The least amount. */
  minimum: Amount;
}

/** Returns what can be paid in a currency, at Stripe or elsewhere. */
export function payableIn(currency: string, isStripe: boolean): Payable {
  if (isStripe) {
    const step = toAmount((unitsPerStep(currency) * unit) / unitsPerOne(currency));
    const listed = fromDecimal(stripeMinimums[currency] ?? "0");
    return { step, minimum: listed > step ? listed : step };
  }
  const style = { style: "currency", currency } as const;
  const { maximumFractionDigits = 2 } = new Intl.NumberFormat("en", style).resolvedOptions();
  const step = toAmount(unit / 10n ** BigInt(maximumFractionDigits));
  return { step, minimum: step };
}

/** The amounts that a user may choose or type, as decimals. */
export interface TopUpRange {
  amounts: string[];
  min: string;
  max: string;
}

/** Returns the usual amounts of a currency, all of which can be paid at Stripe. */
export function usualTopUp(currency: string): TopUpRange {
  const { step, least, most } = dollarIn(currency);
  const times = (count: bigint) => toAmount(count * unit);
  const { minimum } = payableIn(currency, true);
  const min = minimum > times(least) ? minimum : times(least);
  return {
    amounts: [5n, 10n, 25n].map((count) => formatAmount(times(count * step))),
    min: formatAmount(min),
    max: formatAmount(times(most)),
  };
}

/**
 * Returns what of a project's amounts can be paid. Others may be left from a time without Stripe;
 * where no amount is left, the usual ones are offered.
 */
export function payableTopUp(range: TopUpRange, currency: string, isStripe: boolean): TopUpRange {
  const { step, minimum } = payableIn(currency, isStripe);
  const isPayable = (amount: Amount) => amount >= minimum && amount % step === 0n;
  const usual = usualTopUp(currency);
  const amounts = range.amounts.filter((amount) => isPayable(fromDecimal(amount)));
  const least = fromDecimal(range.min);
  const above = ((least + step - 1n) / step) * step;
  const min = toAmount(above > minimum ? above : minimum);
  const most = fromDecimal(range.max);
  const max = toAmount(most - (most % step));
  const within = usual.amounts.filter((amount) => {
    const value = fromDecimal(amount);
    return value >= min && value <= max;
  });
  const offered = [amounts, within].find(({ length }) => length > 0) ?? [formatAmount(min)];
  return { amounts: offered, min: formatAmount(min), max: formatAmount(max) };
}
