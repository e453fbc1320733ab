import { type Amount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { afterTaking, type RateState, rateState } from "../base/rate.ts";
import type { UserLimits } from "../projects/schema.ts";
import {
  addUsage,
  decodePeriodSpend,
  encodePeriodSpend,
  type PeriodSpend,
  type PeriodUsage,
  spentAt,
} from "./period_spend.ts";
import type { SpendingBound } from "./bounds.ts";
import type { Account, RateCounters, WalletRef } from "./account.ts";
import {
  afterCharge,
  allowanceLeft,
  type Authorization,
  decodeAuthorization,
  encodeAuthorization,
} from "./authorization.ts";

/**
 * How far ahead of now a counter can be, in ms. One that is further ahead was written by a clock
 * that was ahead, and is reset. Requests are never more than a minute off, plus clock differences;
 * tokens are counted however few are left.
 */
const debtMaxMs: Readonly<RateCounters> = { requests: 2 * 60_000, tokens: 60 * 60_000 };

interface SpendLimitsOptions {
  wallet: WalletRef | undefined;
  /** The authorization's row, where a wallet pays. */
  row: Uint8Array | null;
  account: Account;
  limits: UserLimits;
  now: number;
}

/**
 * The limits on a user's spending besides the balance: a wallet owner's grant, a project's limits.
 */
export class SpendLimits {
  changed = false;
  #authorization: Authorization | null;
  #counters: RateCounters | null;
  #use: PeriodSpend | null;
  readonly #wallet: WalletRef | undefined;
  readonly #limits: UserLimits;
  readonly #now: number;

  constructor({ wallet, row, account, limits, now }: SpendLimitsOptions) {
    this.#wallet = wallet;
    this.#authorization = row ? decodeAuthorization(row) : null;
    this.#counters = wallet ? this.#authorization?.counters ?? null : account.counters;
    this.#use = wallet ? decodePeriodSpend(this.#authorization?.use) : account.use;
    this.#limits = limits;
    this.#now = now;
  }

  /** The most requests of the user at once; null where there is no limit. */
  get concurrent(): number | null {
    return this.#limits.concurrent;
  }

  /** The counters to store with the account; null where a wallet pays, or nothing was counted. */
  get counters(): RateCounters | null {
    return this.#wallet ? null : this.#counters;
  }

  /** The user's use of this project this month; null before the first charge. */
  get use(): PeriodSpend | null {
    return this.#use;
  }

  /**
   * The authorization's row as it will be written, with the user's counters: a wallet serves
   * several projects, so they are stored with the grant.
   */
  get row(): Uint8Array | null {
    if (!this.#authorization) return null;
    const counters = this.#counters ? { counters: this.#counters } : {};
    const use = this.#use ? { use: encodePeriodSpend(this.#use) } : {};
    return encodeAuthorization({ ...this.#authorization, ...counters, ...use });
  }

  /** Whether new money may be spent; for a wallet, whether its owner allows it. */
  get authorized(): boolean {
    return !this.#wallet || this.#grant?.status === "active";
  }

  /**
   * The user's bounds besides the balance: the wallet owner's cap for a day, and the project's
   * limits for a day and a month. `held` is the sum of the user's running calls.
   */
  bounds(held: Amount): SpendingBound[] {
    const bounds: SpendingBound[] = [];
    if (this.#wallet) {
      const left = (held: Amount) => this.#allowanceLeft(held);
      bounds.push({ left: left(held), withoutOwnHolds: left(zero), refusal: "daily_cap" });
    }
    const { spendPerDay, spendPerMonth } = this.#limits;
    if (spendPerDay === null && spendPerMonth === null) return bounds;
    const { day, month } = spentAt(this.#now, this.#use);
    for (const [limit, spent] of [[spendPerDay, day], [spendPerMonth, month]] as const) {
      if (limit !== null) bounds.push(projectBound(limit, spent, held));
    }
    return bounds;
  }

  /**
   * How much the wallet owner's grant leaves. Zero where the grant was replaced: calls that it
   * already covers are still paid for.
   */
  #allowanceLeft(held: Amount): Amount {
    return this.#grant ? allowanceLeft(this.#grant, { held, now: this.#now }) : zero;
  }

  /** The user's authorization, if it concerns this wallet. */
  get #grant(): Authorization | null {
    const isOwn = this.#authorization?.connectionId === this.#wallet?.connectionId;
    return isOwn ? this.#authorization : null;
  }

  /** The state of the user's rate limits; null where there is no limit. */
  get requests(): RateState | null {
    return this.#rate("requests", this.#limits.requestsPerMinute);
  }

  get tokens(): RateState | null {
    return this.#rate("tokens", this.#limits.tokensPerMinute);
  }

  takeRequest(): void {
    this.#take("requests", this.#limits.requestsPerMinute, 1);
  }

  /** Counts tokens toward the user's rate limit. They are known when a call ends. */
  countTokens(count: number): void {
    this.#take("tokens", this.#limits.tokensPerMinute, count);
  }

  /**
   * Counts a change of the user's balance: returns a number that only rises for the user. `seq` is
   * the number of the change in the account, which is the user's own or a wallet. When another
   * wallet pays from now on, the number goes on.
   */
  countMove(seq: number): number {
    if (!this.#authorization) return seq;
    const moves = Math.max((this.#authorization.moves ?? 0) + 1, seq);
    this.#authorization = { ...this.#authorization, moves };
    this.changed = true;
    return moves;
  }

  /** Counts a response or a charge. */
  countUse(used: PeriodUsage): void {
    this.#use = addUsage(this.#use, used, this.#now);
    this.changed = true;
    if (!this.#wallet || !this.#authorization || used.spent <= 0n) return;
    const { connectionId } = this.#wallet;
    this.#authorization = afterCharge(this.#authorization, {
      connectionId,
      amount: used.spent,
      now: this.#now,
    });
  }

  #rate(of: keyof RateCounters, limit: number | null): RateState | null {
    return limit === null ? null : rateState(this.#usedUp(of), limit, this.#now);
  }

  #take(of: keyof RateCounters, limit: number | null, count: number): void {
    if (limit === null) return;
    const usedUp = afterTaking(this.#usedUp(of), { count, limit, now: this.#now });
    this.#counters = { ...noRateCounters, ...this.#counters, [of]: usedUp };
    this.changed = true;
  }

  #usedUp(of: keyof RateCounters): number {
    const usedUp = (this.#counters ?? noRateCounters)[of];
    return usedUp - this.#now > debtMaxMs[of] ? 0 : usedUp;
  }
}

function projectBound(limit: string, spent: Amount, held: Amount): SpendingBound {
  const cap = fromDecimal(limit);
  const withoutOwnHolds = cap > spent ? toAmount(cap - spent) : zero;
  const left = withoutOwnHolds > held ? toAmount(withoutOwnHolds - held) : zero;
  return { left, withoutOwnHolds, refusal: "project_limit", forCallersOnly: true };
}

/** The counters before anything was counted. */
const noRateCounters: RateCounters = { requests: 0, tokens: 0 };
