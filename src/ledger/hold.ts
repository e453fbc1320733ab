import { ApiError } from "../base/errors.ts";
import { holdLifetimeMs, holdsPerAccountMax, holdWaitMs, holdWaitTotalMs } from "../base/limits.ts";
import { type Amount, zero } from "../base/money.ts";
import type { RateState } from "../base/rate.ts";
import type { Deps } from "../deps.ts";
import type { NewEvent, Trigger } from "../events/event.ts";
import type { ProjectSnapshot } from "../projects/project_cache.ts";
import { ownLimitsOf } from "../projects/user_limits.ts";
import { entryKey } from "../store/keys.ts";
import type { Budget } from "../store/budgets.ts";
import type { Key, Write } from "../store/kv.ts";
import { accountLocation, type AccountRef, availableIn } from "./account.ts";
import type { AccountQueue, OpResult } from "./account_queue.ts";
import type { AccountTx } from "./account_tx.ts";
import {
  activityIdOfRequest,
  type Entry,
  type EntryActor,
  type EntryUsage,
  totalTokens,
} from "./entry.ts";
import type { RefusalReason } from "../base/refusal_reasons.ts";
import { leftIn, refusalBy, withoutOwnHoldsIn } from "./bounds.ts";
import { decodeEntry } from "./store.ts";
import { budgetNames } from "./tx_budgets.ts";
import { type BalanceView, viewBalance } from "./api/view.ts";

/** The amount that a call would hold, out of what is available. */
export interface Quote {
  amount: Amount;
  /**
   * Whether the amount is much less than it would be if no other calls held money: then waiting is
   * worth while.
   */
  reducedByHolds: boolean;
}

/**
 * Returned instead of a quote: the caller must count tokens first, up to the most that could be
 * paid for.
 */
export type CountFirst = { countTo: number };

/** The money that a quote is computed from. */
export interface AvailableFunds {
  /** How much can be spent now. */
  available: Amount;
  /** How much could be spent if only the balance mattered, and no limit. */
  balanceOnly: Amount;
  /** How much could be spent if none of the user's other calls held money. */
  withoutOwnHolds: Amount;
  balance: Amount;
}

/** A hold to place before an upstream is called. */
export interface HoldRequest<Q extends Quote> {
  ref: AccountRef;
  /** The request's id. */
  id: string;
  /** The settings that the quote was computed with: they must still be in force. */
  snapshot: ProjectSnapshot;
  quote(funds: AvailableFunds): Q | CountFirst | null;
  /** Budgets that several users share. They bound the hold, and the charge counts toward them. */
  budgets: readonly Budget[];
  /** Events to emit with the hold. */
  events: readonly NewEvent[];
  /**
   * A row that is written with the hold, unless the row under `key` exists and `blocks` returns
   * true for it.
   */
  mark?:
    | Pick<Write, "sets" | "deletes"> & {
      key: Key;
      blocks(present: Uint8Array): boolean;
    }
    | null;
}

/** The state of a user's rate limits; null where there is no limit. */
export interface RateLimitState {
  requests: RateState | null;
  tokens: RateState | null;
}

/**
 * The outcome of a request for a hold. The last three tell the caller to read again, or to count.
 */
export type HoldResult<Q> =
  | { kind: "held"; quote: Q; rates: RateLimitState }
  | { kind: "rate_limited"; rates: RateLimitState; balance: BalanceView }
  | { kind: RefusalReason; rates: RateLimitState; balance: BalanceView }
  | { kind: "count"; countTo: number }
  | { kind: "settings_moved" | "marked" };

/** The charge of a finished call. */
export interface Settlement {
  ref: AccountRef;
  id: string;
  cost: Amount;
  usage: EntryUsage;
  idempotencyKey: string | null;
  trigger: Trigger;
  /** Who made the call. */
  actor: EntryActor;
  /** The budgets that the hold counts toward. */
  budgets: readonly Budget[];
  /** Whether an earlier attempt to write the charge had an unknown outcome. */
  isRetry?: boolean;
  /** Adds rows and events to the write of the entry. */
  alongside?: ((tx: AccountTx, entry: Entry) => void) | undefined;
}

/** The entry and the balance after it, or `gone`: the hold had ended and was removed. */
export type SettleResult = { kind: "settled"; entry: Entry } | { kind: "gone" };

/** Holds: placed before a call, renewed while it runs, settled or released once. */
export interface Holds {
  /**
   * Places a hold. When only the holds of running calls stand in the way, waits for them. Throws
   * 429 `concurrency_limit` at 256 holds, or at the project's own limit, and the error of a budget
   * that leaves too little.
   */
  place<Q extends Quote>(request: HoldRequest<Q>): Promise<HoldResult<Q>>;
  /** Extends a hold's expiry and records the use so far. False when the hold is gone. */
  renew(ref: AccountRef, id: string, used: Amount): Promise<boolean>;
  /** Charges the use of a call, and ends its hold. */
  settle(settlement: Settlement): Promise<SettleResult>;
  /** Ends a hold without a charge. Harmless when the hold is gone. */
  release(ref: AccountRef, id: string, alongside?: (tx: AccountTx) => void): Promise<void>;
}

const pollMs = 250;

/** Creates holds over the account queue. */
export function createHolds(
  { clock, holders }: Pick<Deps, "clock" | "holders">,
  queue: AccountQueue,
): Holds {
  async function place<Q extends Quote>(request: HoldRequest<Q>): Promise<HoldResult<Q>> {
    const startedAt = clock.elapsed();
    const waitMs = request.snapshot.project.limits.heldWaitMs ?? holdWaitMs;
    let deadline = startedAt + waitMs;
    for (let patient = waitMs > 0;; patient = clock.elapsed() < deadline) {
      const announced = holders.announce();
      if (announced) await announced;
      const held = await queue.run(request.ref, {
        reads: request.mark ? [request.mark.key] : [],
        estimatedBytes: 2048,
        budgets: request.budgets,
        apply: (tx) => applyHold(tx, request, patient),
      });
      if (held.kind !== "held_by_running" || !patient) return held;
      // Each time an earlier call ends, the wait starts again.
      if (await changedWithin(request.ref, deadline - clock.elapsed())) {
        deadline = Math.min(clock.elapsed() + waitMs, startedAt + holdWaitTotalMs);
      }
    }
  }

  /**
   * Waits for a write of the account, for at most `ms`. Returns true after one by this process;
   * false after `pollMs` at the latest, so that the account is read for another process's writes.
   */
  async function changedWithin(ref: AccountRef, ms: number): Promise<boolean> {
    const stop = new AbortController();
    const change = queue.changed(ref, stop.signal).then(() => !stop.signal.aborted);
    const pause = clock.sleep(Math.max(1, Math.min(ms, pollMs)), stop.signal).then(() => false);
    const changed = await Promise.race([change, pause]);
    stop.abort();
    return changed;
  }

  return {
    place,
    renew: (ref, id, used) =>
      queue.run(ref, {
        reads: [],
        estimatedBytes: 128,
        existingHoldOnly: true,
        apply(tx) {
          return { value: tx.renewHold(id, { used, expiresAt: tx.now + holdLifetimeMs }) };
        },
      }),
    settle: (settlement) => {
      const { ref, id, cost, usage, idempotencyKey, trigger, actor, budgets, isRetry } = settlement;
      const activityId = activityIdOfRequest(id);
      const booked = entryKey(accountLocation(ref).owner, activityId);
      return queue.run<SettleResult>(ref, {
        reads: isRetry ? [booked] : [],
        estimatedBytes: 4096,
        budgets,
        existingHoldOnly: true,
        apply(tx) {
          const row = tx.row(booked);
          const landed = row && decodeEntry(row);
          // A hold that had ended was charged what was last recorded, under the same id.
          if (landed?.kind === "usage") return { value: { kind: "settled", entry: landed } };
          const hold = tx.takeHold(id);
          if (!hold) return { value: { kind: "gone" } };
          tx.spending.countTokens(totalTokens(usage));
          const counted = budgetNames(hold.budgets);
          const entry = tx.debit(
            cost,
            { id: activityId, kind: "usage", usage, idempotencyKey, budgets: counted },
            { trigger, actor },
            { unlimited: hold.amount, budgets },
          );
          settlement.alongside?.(tx, entry);
          return { value: { kind: "settled", entry } };
        },
      });
    },
    release: (ref, id, alongside) =>
      queue.run(ref, {
        reads: [],
        estimatedBytes: 1024,
        existingHoldOnly: true,
        apply(tx) {
          if (tx.takeHold(id)) alongside?.(tx);
          return { value: undefined };
        },
      }),
  };
}

function applyHold<Q extends Quote>(
  tx: AccountTx,
  { ref, id, snapshot, quote, events, mark, budgets }: HoldRequest<Q>,
  patient: boolean,
): OpResult<HoldResult<Q>> {
  if (tx.snapshot.version !== snapshot.version) return { value: { kind: "settings_moved" } };
  const present = mark && tx.row(mark.key);
  if (present && mark.blocks(present)) return { value: { kind: "marked" } };
  const { spending } = tx;
  if (!spending.authorized) return refused(tx, "authorization_required");
  const { requests, tokens } = spending;
  if (requests?.remaining === 0 || tokens?.remaining === 0) return refused(tx, "rate_limited");
  requireHoldCapacity(tx, ref.user);
  const { account, account: { balance } } = tx;
  const bounds = tx.bounds(budgets);
  const quoted = quote({
    available: leftIn(bounds),
    balanceOnly: availableIn(account),
    withoutOwnHolds: withoutOwnHoldsIn(bounds),
    balance,
  });
  if (quoted && "countTo" in quoted) return { value: { kind: "count", ...quoted } };
  if (!quoted || (quoted.reducedByHolds && patient)) {
    const fits = (amount: Amount) =>
      quote({ available: amount, balanceOnly: amount, withoutOwnHolds: amount, balance }) !== null;
    return refused(tx, quoted ? "held_by_running" : refusalBy(bounds, fits));
  }
  spending.takeRequest();
  const expiresAt = tx.now + holdLifetimeMs;
  tx.addHold({ id, amount: quoted.amount, used: zero, expiresAt }, budgets);
  for (const key of mark?.deletes ?? []) tx.remove(key);
  for (const { key, value } of mark?.sets ?? []) tx.put(key, value);
  tx.emit(...events);
  const rates = { requests: spending.requests, tokens };
  return { value: { kind: "held", quote: quoted, rates } };
}

function refused(
  tx: AccountTx,
  kind: RefusalReason | "rate_limited",
): OpResult<Extract<HoldResult<never>, { kind: typeof kind }>> {
  const { requests, tokens } = tx.spending;
  return {
    value: { kind, rates: { requests, tokens }, balance: balanceViewOf(tx) },
    refused: true,
  };
}

function balanceViewOf({ account: { balance, held }, snapshot }: AccountTx): BalanceView {
  return viewBalance(balance, held, snapshot.project.currency);
}

/** Throws 429 at the limit of the user, or at the capacity of one account. */
function requireHoldCapacity(
  { account, ownHolds, spending, hasEnded, snapshot: { project } }: AccountTx,
  user: string,
): void {
  const { concurrent } = spending;
  const running = ownHolds.filter((hold) => !hasEnded(hold));
  if (concurrent !== null && running.length >= concurrent) {
    const isOwn = ownLimitsOf(project, user)?.concurrent !== undefined;
    const setting = isOwn ? "limits.users" : "limits.user.concurrent";
    throw tooManyHolds(concurrent, `the project's limit, '${setting}'`);
  }
  if (account.holds.length >= holdsPerAccountMax) {
    throw tooManyHolds(holdsPerAccountMax, "the most that one balance can have");
  }
}

function tooManyHolds(most: number, bound: string): ApiError {
  return new ApiError(429, {
    message: `This user has ${most} requests running, which is ${bound}.`,
    type: "rate_limit_error",
    code: "concurrency_limit",
    headers: { "retry-after": "1" },
  });
}
