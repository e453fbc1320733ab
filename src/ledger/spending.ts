import { type Amount, formatAmount, fromDecimal, least, toAmount, zero } from "../base/money.ts";
import { periodAt } from "../base/period.ts";
import { afterTaking, type RateState, rateState } from "../base/rate.ts";
import type { UserLimits } from "../projects/schema.ts";
import { afterUse, decodeUse, encodeUse, type MonthUse } from "../summaries/month_use.ts";
import type { Account, WalletRef } from "./account.ts";
import {
  afterCharge,
  allowanceLeft,
  type Authorization,
  decodeAuthorization,
  encodeAuthorization,
} from "./authorization.ts";
import { type Counters, noCounters } from "./counters.ts";

interface SpendingOptions {
  wallet: WalletRef | undefined;
  /** The authorization's row, where a wallet pays. */
  row: Uint8Array | null;
  account: Account;
  limits: UserLimits;
  now: number;
}

/** What bounds one user's spending beside the money: a wallet owner's leave, a project's limits. */
export class Spending {
  changed = false;
  #authorization: Authorization | null;
  #counters: Counters | null;
  #use: MonthUse | null;
  readonly #wallet: WalletRef | undefined;
  readonly #limits: UserLimits;
  readonly #now: number;

  constructor({ wallet, row, account, limits, now }: SpendingOptions) {
    this.#wallet = wallet;
    this.#authorization = row ? decodeAuthorization(row) : null;
    this.#counters = wallet ? this.#authorization?.counters ?? null : account.counters;
    this.#use = wallet ? decodeUse(this.#authorization?.use) : account.use;
    this.#limits = limits;
    this.#now = now;
  }

  /** To be kept with the account; null where a wallet pays, or nothing was counted. */
  get counters(): Counters | null {
    return this.#wallet ? null : this.#counters;
  }

  /** What the user did this month, in this project; null before the first charge. */
  get use(): MonthUse | null {
    return this.#use;
  }

  /** Beside a wallet, which is for several projects, what counts for one is kept with its leave. */
  get row(): Uint8Array | null {
    if (!this.#authorization) return null;
    const counters = this.#counters ? { counters: this.#counters } : {};
    const use = this.#use ? { use: encodeUse(this.#use) } : {};
    return encodeAuthorization({ ...this.#authorization, ...counters, ...use });
  }

  /** Whether new money may be spent: of a wallet, whether its owner allows it. */
  get authorized(): boolean {
    return !this.#wallet || this.#leave?.status === "active";
  }

  /**
   * What a wallet's owner still allows today, less what is held. Null without a wallet, and for an
   * answer that began under a leave which has given way to another one: it is paid for as it began.
   */
  allowance(held: Amount): Amount | null {
    return this.#leave && allowanceLeft(this.#leave, { held, now: this.#now });
  }

  /** The user's authorization, if it is about this wallet. */
  get #leave(): Authorization | null {
    const isOwn = this.#authorization?.connectionId === this.#wallet?.connectionId;
    return isOwn ? this.#authorization : null;
  }

  /** What the project's limits of a day and a month leave, less what is held; null without any. */
  budget(held: Amount): Amount | null {
    const { spendPerDay, spendPerMonth } = this.#limits;
    if (spendPerDay === null && spendPerMonth === null) return null;
    const { day, month } = this.#today();
    const today = leftOf(spendPerDay, day, held);
    const thisMonth = leftOf(spendPerMonth, month, held);
    return today !== null && thisMonth !== null ? least(today, thisMonth) : today ?? thisMonth;
  }

  /** How the user's rates stand; null where there is no limit. */
  get requests(): RateState | null {
    return this.#rate("requests", this.#limits.requestsPerMinute);
  }

  get tokens(): RateState | null {
    return this.#rate("tokens", this.#limits.tokensPerMinute);
  }

  takeRequest(): void {
    this.#take("requests", this.#limits.requestsPerMinute, 1);
  }

  /** Tokens count once they are known: at an answer's end. */
  countTokens(count: number): void {
    this.#take("tokens", this.#limits.tokensPerMinute, count);
  }

  /** An answer or a charge. */
  countUse(use: Omit<MonthUse, "month">): void {
    this.#use = afterUse(this.#use, use, this.#now);
    this.changed = true;
    if (use.spent > 0n) this.#countCharge(use.spent);
  }

  #countCharge(amount: Amount): void {
    if (this.#leave) {
      this.#authorization = afterCharge(this.#leave, amount, this.#now);
      this.changed = true;
    }
    const { spendPerDay, spendPerMonth } = this.#limits;
    if (spendPerDay === null && spendPerMonth === null) return;
    const { day, month } = this.#today();
    const counted = this.#counters ?? noCounters;
    this.#count({
      day: periodAt(this.#now, "day", counted.day),
      daySpent: formatAmount(day + amount),
      month: periodAt(this.#now, "month", counted.month),
      monthSpent: formatAmount(month + amount),
    });
  }

  #today(): { day: Amount; month: Amount } {
    const { day, daySpent, month, monthSpent } = this.#counters ?? noCounters;
    return {
      day: day === periodAt(this.#now, "day", day) ? fromDecimal(daySpent) : zero,
      month: month === periodAt(this.#now, "month", month) ? fromDecimal(monthSpent) : zero,
    };
  }

  #rate(of: "requests" | "tokens", limit: number | null): RateState | null {
    return limit === null ? null : rateState((this.#counters ?? noCounters)[of], limit, this.#now);
  }

  #take(of: "requests" | "tokens", limit: number | null, count: number): void {
    if (limit === null) return;
    const usedUp = (this.#counters ?? noCounters)[of];
    this.#count({ [of]: afterTaking(usedUp, { count, limit, now: this.#now }) });
  }

  #count(counted: Partial<Counters>): void {
    this.#counters = { ...noCounters, ...this.#counters, ...counted };
    this.changed = true;
  }
}

function leftOf(limit: string | null, spent: Amount, held: Amount): Amount | null {
  if (limit === null) return null;
  const cap = fromDecimal(limit);
  return toAmount(cap > spent + held ? cap - spent - held : 0n);
}
