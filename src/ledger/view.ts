import {
  type Amount,
  formatAmount,
  formatForPeople,
  least,
  toAmount,
  zero,
} from "../base/money.ts";
import { type Account, availableIn } from "./account.ts";
import type { Entry } from "./entry.ts";

/** A balance as every answer about money shows it; exact decimal strings, but for the last. */
export interface BalanceView {
  balance: string;
  held: string;
  available: string;
  balanceFormatted: string;
}

/** The view of exact amounts. */
export function viewBalance(balance: Amount, held: Amount, currency: string): BalanceView {
  return {
    balance: formatAmount(balance),
    held: formatAmount(held),
    available: formatAmount(balance - held),
    balanceFormatted: formatForPeople(balance, currency),
  };
}

/** An account as it counts at `now`: an expired hold is no hold, and its recorded use is charged. */
export function settledAt(account: Account, now: number): { balance: Amount; held: Amount } {
  const expired = account.holds.filter((hold) => hold.expiresAt <= now);
  const freed = expired.reduce((sum, hold) => sum + hold.amount, 0n);
  const held = toAmount(account.held - freed);
  const used = toAmount(expired.reduce((sum, hold) => sum + hold.used, 0n));
  const spendable = availableIn({ balance: account.balance, held });
  return { balance: toAmount(account.balance - least(used, spendable)), held };
}

/** The balance right after an entry, as its maker's answer shows it, also when asked again. */
export function viewAfter(entry: Entry, currency: string): BalanceView {
  return viewBalance(fromDecimal(entry.balanceAfter), fromDecimal(entry.heldAfter), currency);
}

/** Reads a decimal that `formatAmount` wrote, of any size. */
export function fromDecimal(text: string): Amount {
  const [whole = "0", fraction = ""] = text.split(".");
  const sign = whole.startsWith("-") ? -1n : 1n;
  const units = BigInt(whole.replace("-", "") + fraction.padEnd(9, "0"));
  return units === 0n ? zero : toAmount(sign * units);
}
