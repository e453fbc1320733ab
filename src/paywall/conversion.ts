import { createHash } from "node:crypto";
import { BoundedMap } from "../base/bounded_map.ts";
import { Bursts, projectBurst } from "../base/bursts.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { MoneyRecorder } from "../ledger/record.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { paywalledKey, paywalledPrefix, paywalledUserPrefix } from "../store/keys.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../store/expiry.ts";
import { emptyWrite, type Key } from "../store/kv.ts";
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

interface Seen {
  at: number;
  /** False where a project has very many at once: then only this process knows of it. */
  hasRow: boolean;
}

/** When users were refused. */
export const paywalledRows: ExpiringKind = {
  prefix: paywalledPrefix,
  endsAt: (value) => fromBytes<number>(value) + hourMs,
};

/** Creates the counter. Its rows go with other writes. */
export function createConversion(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): Conversion {
  /** When users were last counted, so that most refusals write nothing. */
  const seen = new BoundedMap<string, Seen>(rememberedMax);
  const projects = new Bursts(clock, projectBurst);
  return {
    saw(projectId, user) {
      const name = JSON.stringify([projectId, user]);
      const now = clock.now();
      if (now - (seen.get(name)?.at ?? -hourMs) < hourMs) return;
      const hasRow = projects.isFirst(projectId);
      seen.set(name, { at: now, hasRow });
      const counted = countPaywallHourly(projectId, { saw: 1n, paid: 0n }, now);
      if (!hasRow) return committer.count(counted);
      const key = paywalledKey(projectId, hashOf(user));
      // Together: who finds the row, perhaps another process, counts that the user has paid.
      committer.carry(withExpiry(paywalledRows, { key, value: toBytes(now) }), counted);
    },
    async paid(projectId, user) {
      const name = JSON.stringify([projectId, user]);
      const own = seen.get(name);
      const isHere = own && !own.hasRow && clock.now() - own.at <= hourMs;
      const at = isHere
        ? own.at
        : await takeRow({ kv, committer }, paywalledKey(projectId, hashOf(user)));
      if (at === undefined || clock.now() - at > hourMs) return;
      seen.delete(name);
      // Counted in the hour in which the paywall was seen, so that the share is never above one.
      committer.count(countPaywallHourly(projectId, { saw: 0n, paid: 1n }, at));
    },
  };
}

/** Removes a row, and returns its time; undefined where there is none, or another process has. */
async function takeRow(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  key: Key,
): Promise<number | undefined> {
  const { value, version } = await kv.get(key);
  if (value === null) return undefined;
  const checks = [{ key, version }];
  const deletes = keysWithExpiry(paywalledRows, { key, value });
  const taken = await committer.commit({ ...emptyWrite(), checks, deletes });
  return taken === null ? undefined : fromBytes<number>(value);
}

/** A row and its end outlive the erasure of a user by up to an hour: neither may name them. */
function hashOf(user: string): string {
  return createHash("sha256").update(user).digest("base64url");
}

/** Forgets that a user saw the paywall. */
export function createPaywalledErasers(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): Eraser[] {
  const eraserOf = (name: string, nameOf: (user: string) => string): Eraser =>
    eraseRows({
      name,
      kv,
      committer,
      prefix: ({ projectId, user }) => paywalledUserPrefix(projectId, nameOf(user)),
      rewrite: ({ key, value }) =>
        value && { sets: [], deletes: keysWithExpiry(paywalledRows, { key, value }) },
    });
  return [
    eraserOf("paywalled", hashOf),
    // Rows of 0.9.0, which are gone after an hour. Version 1.1 may drop it.
    eraserOf("paywalledBefore", (user) => user),
  ];
}

/** Wraps a recorder, so that `conversion` learns of each deposit that a paywall may have led to. */
export function notingDeposits(
  recorder: MoneyRecorder,
  conversion: Pick<Conversion, "paid">,
): MoneyRecorder {
  return {
    ...recorder,
    async deposit(request) {
      const result = await recorder.deposit(request);
      const { projectId, user } = request.ref;
      // Nothing depends on it, and the deposit is recorded whatever comes of it.
      if (result.kind !== "replayed") conversion.paid(projectId, user).catch(() => {});
      return result;
    },
  };
}
