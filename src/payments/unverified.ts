import { errorFields } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { type UnverifiedReason, unverifiedReasonNames } from "../base/unverified_reasons.ts";
import type { Deps } from "../deps.ts";
import { allUnverifiedEventsPrefix, unverifiedEventsKey } from "../store/keys.ts";
import { emptyWrite, type Kv } from "../store/kv.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../store/expiry.ts";

/**
 * Events for one Stripe account that nobody could verify, since the last one that was. Anyone can
 * send them, so they are one row, and no payment. Times in milliseconds since 1970.
 */
export interface UnverifiedEvents {
  merchantId: string;
  /** Why the last event could not be verified. */
  reason: UnverifiedReason;
  count: number;
  firstAt: number;
  lastAt: number;
  /** When Stripe was last asked for paid sessions because of them; 0 for never. */
  checkedAt: number;
  /** Payments that were booked only because Stripe was asked: strangers cannot cause these. */
  booked: number;
  /** When the first of them was. */
  bookedAt: number | null;
}

/** Takes note of events that nobody could verify. */
export interface UnverifiedReports {
  /**
   * Counts an event. The log has one line a minute for all of them, and the store one row for each
   * account; `merchantId` is null where the URL names no project.
   */
  saw(merchantId: string | null, reason: UnverifiedReason): void;
  /** Forgets those of an account, since its signing secret has verified an event. Never throws. */
  verified(merchantId: string): Promise<void>;
}

const everyMs = 60_000;
const lifetimeMs = 7 * 24 * 60 * 60 * 1000;

/** Events that nobody could verify, by account. */
export const unverifiedEventRows: ExpiringKind = {
  prefix: allUnverifiedEventsPrefix,
  endsAt: (value) => fromBytes<UnverifiedEvents>(value).lastAt + lifetimeMs,
};

/** Accounts that a line of the log names; more are only counted. */
const namedMax = 10;

type Told = Pick<UnverifiedEvents, "reason" | "count" | "lastAt">;

/** Creates the reports of one process: the first at once, and then one a minute. */
export function createUnverifiedReports(
  deps: Pick<Deps, "kv" | "committer" | "clock" | "log" | "metrics">,
): UnverifiedReports {
  const { clock, log, metrics } = deps;
  const told = new Map<string, Told>();
  const counts = new Map<UnverifiedReason, number>();
  let isWaiting = false;

  const notStored = (error: unknown) =>
    log("warn", "unverified_events_not_stored", errorFields(error));

  function flush(): void {
    isWaiting = counts.size > 0;
    if (!isWaiting) return;
    clock.after(everyMs, flush);
    const merchants = [...told.keys()].slice(0, namedMax);
    log("warn", "stripe_events_unverified", { ...Object.fromEntries(counts), merchants });
    counts.clear();
    const rows = [...told];
    told.clear();
    for (const [merchantId, last] of rows) {
      addTo(deps, merchantId, last).catch(notStored);
    }
  }

  return {
    saw(merchantId, reason) {
      metrics.unverifiedEvents[reason].add();
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      if (merchantId !== null) {
        const count = (told.get(merchantId)?.count ?? 0) + 1;
        told.set(merchantId, { reason, count, lastAt: clock.now() });
      }
      if (!isWaiting) flush();
    },
    async verified(merchantId) {
      told.delete(merchantId);
      await forget(deps, merchantId).catch(notStored);
    },
  };
}

async function forget(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  merchantId: string,
): Promise<void> {
  const key = unverifiedEventsKey(merchantId);
  const { value, version } = await kv.get(key);
  if (value === null) return;
  const checks = [{ key, version }];
  const deletes = keysWithExpiry(unverifiedEventRows, { key, value });
  await committer.commit({ ...emptyWrite(), checks, deletes });
}

async function addTo(
  deps: Pick<Deps, "kv" | "committer">,
  merchantId: string,
  { reason, count, lastAt }: Told,
): Promise<void> {
  await changeUnverified(deps, merchantId, (row) => {
    const events = row ?? newRow(merchantId, lastAt);
    return { ...events, reason, count: events.count + count, lastAt };
  });
}

const newRow = (merchantId: string, firstAt: number): UnverifiedEvents => ({
  merchantId,
  reason: "invalid_signature",
  count: 0,
  firstAt,
  lastAt: firstAt,
  checkedAt: 0,
  booked: 0,
  bookedAt: null,
});

/** Attempts at a row that other processes write too. */
const attemptsMax = 5;

/** Changes the row of an account; nothing where `change` returns null. */
export async function changeUnverified(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  merchantId: string,
  change: (before: UnverifiedEvents | null) => UnverifiedEvents | null,
): Promise<void> {
  const key = unverifiedEventsKey(merchantId);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const { value, version } = await kv.get(key);
    const row = change(value && fromBytes<UnverifiedEvents>(value));
    if (row === null) return;
    const sets = withExpiry(unverifiedEventRows, { key, value: toBytes({ ...row }) });
    if (await committer.commit({ ...emptyWrite(), checks: [{ key, version }], sets })) return;
  }
}

/** The events for one account that nobody could verify; null where there are none. */
export async function readUnverified(kv: Kv, merchantId: string): Promise<UnverifiedEvents | null> {
  const { value } = await kv.get(unverifiedEventsKey(merchantId));
  const row = value && fromBytes<UnverifiedEvents>(value);
  // A newer version may have other reasons.
  return row && unverifiedReasonNames.includes(row.reason) ? row : null;
}

/** An event with a right signature takes some seconds to arrive: until then nothing is proven. */
const eventArrivesMs = 2 * 60_000;

/**
 * Whether the signing secret is wrong for certain: payments had to be asked for at Stripe, and no
 * event with a right signature has come since.
 */
export function isSecretWrong({ bookedAt }: UnverifiedEvents, now: number): boolean {
  return bookedAt !== null && now - bookedAt >= eventArrivesMs;
}
