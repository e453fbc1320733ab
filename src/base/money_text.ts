import { type Amount, numericLiteral, unit } from "./money.ts";

/** How an amount is shortened: what someone has is cut, sums are rounded half to even. */
export type ShortRounding = "trunc" | "halfEven";

const formats = new Map<string, Intl.NumberFormat>();

/** What small amounts show more than the currency's usual digits. */
const moreDigits = 2;
/** The digits of an amount after the point. */
const amountDigits = 9;

/**
 * Formats an amount for people, as precisely as they need it: `$12.34`, `$0.47`, `$0.0098`,
 * `<$0.0001`. Below a tenth of a unit two digits more are shown. `locale` is a BCP 47 tag.
 */
export function formatShort(
  amount: Amount,
  currency: string,
  { rounding, locale = "en-US" }: { rounding: ShortRounding; locale?: string },
): string {
  const digits = digitsOf(currency, locale);
  const size = amount < 0n ? -amount : amount;
  if (size === 0n || size * 10n >= unit * 10n ** BigInt(Math.max(0, 2 - digits))) {
    return formatOf(currency, locale, rounding, digits).format(numericLiteral(amount));
  }
  const most = digits + moreDigits;
  if (size < unit / 10n ** BigInt(most)) {
    const sign = amount < 0n ? "-" : "";
    const smallest = { style: "currency", currency, maximumFractionDigits: most } as const;
    return `${sign}<${new Intl.NumberFormat(locale, smallest).format(10 ** -most)}`;
  }
  // Amounts below each other end at the same digit.
  const least = size % (unit / 10n ** BigInt(digits)) === 0n ? digits : most;
  return formatOf(currency, locale, rounding, least, most).format(numericLiteral(amount));
}

/** Formats an amount for people with every digit that it has: `$12.345678`. */
export function formatExact(amount: Amount, currency: string, locale = "en-US"): string {
  const digits = digitsOf(currency, locale);
  return formatOf(currency, locale, "trunc", digits, amountDigits).format(numericLiteral(amount));
}

function digitsOf(currency: string, locale: string): number {
  return formatOf(currency, locale, "trunc").resolvedOptions().maximumFractionDigits ?? 2;
}

function formatOf(
  currency: string,
  locale: string,
  roundingMode: ShortRounding,
  least?: number,
  most = least,
): Intl.NumberFormat {
  const name = `${locale} ${currency} ${roundingMode} ${least} ${most}`;
  let format = formats.get(name);
  if (!format) {
    const digits = least === undefined || most === undefined
      ? {}
      : { minimumFractionDigits: least, maximumFractionDigits: most };
    format = new Intl.NumberFormat(locale, {
      style: "currency",
      currency: currency.toUpperCase(),
      roundingMode,
      ...digits,
    });
    formats.set(name, format);
  }
  return format;
}
