import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { leaseKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";

/** Work that one process of a store does for all of them. */
export interface Lease {
  /**
   * Whether this process has the work now: it had it before, or nobody else who lives renewed it.
   * Two may believe so for a moment, where their clocks differ by more than half a lease.
   */
  take(): Promise<boolean>;
  /** Gives the work up, so that another process can take it at once. */
  release(): Promise<void>;
}

interface Held {
  holder: string;
  /** In milliseconds since 1970. */
  until: number;
}

/** The least time for which a lease is taken: twice as long as the work's own interval. */
const leaseMs = 30_000;

/** Creates a lease by name; in a store of this process alone it always has it. */
export function createLease(
  { kv, clock, holders }: Pick<Deps, "kv" | "clock" | "holders">,
  name: string,
): Lease {
  const key = leaseKey(name);
  const holder = holders.own;
  let held = false;

  return {
    async take() {
      if (!kv.limits.isShared) return true;
      const row = await kv.get(key);
      const known = row.value ? fromBytes<Held>(row.value) : null;
      const now = clock.now();
      held = known?.holder === holder || !known || isOver(known, now) ||
        holders.isGone(known.holder);
      if (!held) return false;
      const value = toBytes({ holder, until: now + leaseMs } satisfies Held);
      const write = { ...emptyWrite(), checks: [{ key, version: row.version }] };
      held = await kv.atomic({ ...write, sets: [{ key, value }] }) !== null;
      return held;
    },
    async release() {
      if (!held) return;
      held = false;
      const row = await kv.get(key);
      if (!row.value || fromBytes<Held>(row.value).holder !== holder) return;
      await kv.atomic({
        ...emptyWrite(),
        checks: [{ key, version: row.version }],
        deletes: [key],
      });
    },
  };
}

/** Its end has passed, or is further away than a lease is long: then a clock was set. */
function isOver({ until }: Held, now: number): boolean {
  return until < now || until > now + 2 * leaseMs;
}
