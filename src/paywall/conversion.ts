import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { paywalledKey, paywalledPrefix, paywalledUserPrefix } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { createRounds } from "../store/scan.ts";
import { countPaywallHourly } from "../summaries/hourly_counters.ts";

/** Counts how many users who saw the paywall paid within an hour. */
export interface Conversion {
  /** A user was refused for want of money. Counted once an hour. */
  saw(projectId: string, user: string): void;
  /** A user paid. Best effort: nothing waits for it. */
  paid(projectId: string, user: string): Promise<void>;
}

const hourMs = 60 * 60 * 1000;
const rememberedMax = 20_000;

/** Creates the counter. Its rows go with other writes. */
export function createConversion(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): Conversion {
  /** When users were last counted, so that most refusals write nothing. */
  const seenAt = new Map<string, number>();
  return {
    saw(projectId, user) {
      const name = JSON.stringify([projectId, user]);
      const now = clock.now();
      if (now - (seenAt.get(name) ?? -hourMs) < hourMs) return;
      if (seenAt.size >= rememberedMax) seenAt.clear();
      seenAt.set(name, now);
      committer.carry({ key: paywalledKey(projectId, user), value: toBytes(now) });
      committer.count(countPaywallHourly(projectId, { saw: 1n, paid: 0n }, now));
    },
    async paid(projectId, user) {
      const key = paywalledKey(projectId, user);
      const { value, version } = await kv.get(key);
      if (value === null) return;
      const at = fromBytes<number>(value);
      const checks = [{ key, version }];
      const counted = await committer.commit({ ...emptyWrite(), checks, deletes: [key] });
      if (counted === null || clock.now() - at > hourMs) return;
      seenAt.delete(JSON.stringify([projectId, user]));
      // Counted in the hour in which the paywall was seen, so that the share is never above one.
      committer.count(countPaywallHourly(projectId, { saw: 0n, paid: 1n }, at));
    },
  };
}

const rowsPerSweep = 500;

/** Creates a sweep that forgets who saw the paywall more than an hour ago; bounded a call. */
export function createPaywalledSweep(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): () => Promise<void> {
  const rounds = createRounds(kv, paywalledPrefix, rowsPerSweep);
  return async () => {
    const rows = await rounds.next();
    const since = clock.now() - hourMs;
    const old = rows.filter(({ value }) => value && fromBytes<number>(value) < since);
    if (old.length === 0) return;
    await committer.commit({ ...emptyWrite(), deletes: old.map(({ key }) => key) });
  };
}

/** Forgets that a user saw the paywall. */
export function createPaywalledEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "paywalled",
    kv,
    committer,
    prefix: ({ projectId, user }) => paywalledUserPrefix(projectId, user),
    rewrite: ({ key }) => ({ sets: [], deletes: [key] }),
  });
}
