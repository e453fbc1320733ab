declare const amountBrand: unique symbol;

/**
 * Returns a decimal as people type it with a point: a comma is accepted too, unless it may group
 * thousands ("1,000"): then the text is returned unchanged, and is not a valid decimal.
 */
export function typedDecimal(text: string): string {
  return text.trim().replace(/,(?!\d{3}$)/, ".");
}

/** Money as a whole number of 1e-9 currency units. The only representation inside the service. */
export type Amount = bigint & { readonly [amountBrand]: true };

/** One currency unit: 1e9. */
export const unit = 1_000_000_000n;

/** An amount of zero. */
export const zero: Amount = toAmount(0n);

/** States that `value` already counts 1e-9 units. */
export function toAmount(value: bigint): Amount {
  return value as Amount;
}

const decimal = /^(\d{1,12})(?:\.(\d{1,9}))?$/;

/**
 * Reads a decimal string of at most 12 digits before and 9 after the point, exactly. Null for
 * anything else: a sign, an exponent, spaces, a tenth decimal, a JSON number.
 */
export function parseAmount(text: unknown): Amount | null {
  if (typeof text !== "string") return null;
  const match = decimal.exec(text);
  if (!match) return null;
  const [, whole = "", fraction = ""] = match;
  return toAmount(BigInt(whole) * unit + BigInt(fraction.padEnd(9, "0")));
}

/** The exact decimal string, without trailing zeros: `"12.5"`, `"0"`, `"-0.000000001"`. */
export function formatAmount(amount: bigint): string {
  const sign = amount < 0n ? "-" : "";
  const digits = (amount < 0n ? -amount : amount).toString().padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "");
  return sign + digits.slice(0, -9) + (fraction ? `.${fraction}` : "");
}

/**
 * Divides and rounds up. The only rounding of the whole service: a charge computed from a price
 * rounds up to the next 1e-9, so that use is never free by rounding.
 */
export function divideRoundingUp(dividend: bigint, divisor: bigint): Amount {
  return toAmount((dividend + divisor - 1n) / divisor);
}

/** The smaller of two amounts. */
export function least(a: Amount, b: Amount): Amount {
  return a < b ? a : b;
}

const formats = new Map<string, Intl.NumberFormat>();

/**
 * Formats for people, with the currency's number of digits, cut rather than rounded up: `"$12.34"`.
 */
export function formatForPeople(amount: Amount, currency: string): string {
  let format = formats.get(currency);
  if (!format) {
    format = new Intl.NumberFormat("en-US", {
      style: "currency",
      currency: currency.toUpperCase(),
      roundingMode: "trunc",
    });
    formats.set(currency, format);
  }
  return format.format(numericLiteral(amount));
}

/** The exact decimal string, as `Intl.NumberFormat` takes it. */
export function numericLiteral(amount: bigint): Intl.StringNumericLiteral {
  return formatAmount(amount) as Intl.StringNumericLiteral;
}

/** Reads a decimal that `formatAmount` wrote, of any size. */
export function fromDecimal(text: string): Amount {
  const [whole = "0", fraction = ""] = text.split(".");
  const sign = whole.startsWith("-") ? -1n : 1n;
  const units = BigInt(whole.replace("-", "") + fraction.padEnd(9, "0"));
  return units === 0n ? zero : toAmount(sign * units);
}
