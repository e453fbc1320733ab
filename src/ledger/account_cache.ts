import type { Clock } from "../base/clock.ts";
import type { KvLimits } from "../store/kv.ts";
import type { Account } from "./account.ts";

/** An account as this process last read or wrote it. */
export interface CachedAccount {
  account: Account;
  version: string | null;
}

/** Accounts that need not be read again, and what is known of other processes that write them. */
export interface AccountCache {
  /** Null where the account has to be read. */
  find(name: string): CachedAccount | null;
  remember(name: string, cached: CachedAccount): void;
  forget(name: string): void;
  /** A write was refused: another process has written the account. */
  onRefused(name: string): void;
  /** The account was read, at this version. */
  onRead(name: string, version: string | null): void;
  /** Whether writes of the account were refused again and again just now. */
  isContended(name: string): boolean;
}

const accountsMax = 20_000;
/** How long an account that others write too is believed: from a hold to a quick settle. */
const believedMs = 50;
/** After this many refused writes, each within a second of the last, processes take turns. */
const refusalsMin = 3;
const refusalsApartMs = 1_000;
/** After so many reads that found the account unchanged, nobody else writes it any more. */
const unchangedReadsMin = 8;

interface Meeting {
  refusedAt: number;
  refusals: number;
  /** The version that was last known here, and how many reads since have found it unchanged. */
  version: string | null;
  unchangedReads: number;
}

/** Creates a cache of accounts by name; in a store of this process alone nobody else is met. */
export function createAccountCache(
  { elapsed }: Pick<Clock, "elapsed">,
  { isShared }: Pick<KvLimits, "isShared">,
): AccountCache {
  const known = new Map<string, CachedAccount & { at: number }>();
  /** The accounts on which another process was met. */
  const met = new Map<string, Meeting>();

  return {
    find(name) {
      const cached = known.get(name);
      if (!cached) return null;
      const isBelieved = met.size === 0 || !met.has(name) || elapsed() - cached.at <= believedMs;
      return isBelieved ? cached : null;
    },
    /** Evicts the oldest first: reordering the map at each operation would cost more. */
    remember(name, { account, version }) {
      // A closed account is reopened by a write that this queue does not make.
      if (account.closed) return void known.delete(name);
      const meeting = met.size > 0 && met.get(name);
      if (meeting) meeting.version = version;
      const at = meeting ? elapsed() : 0;
      const cached = known.get(name);
      if (cached) return void Object.assign(cached, { account, version, at });
      known.set(name, { account, version, at });
      evict(known);
    },
    forget: (name) => void known.delete(name),
    onRefused(name) {
      known.delete(name);
      if (!isShared) return;
      const before = met.get(name);
      const refusedAt = elapsed();
      const isSoon = before && refusedAt - before.refusedAt < refusalsApartMs;
      const refusals = isSoon ? before.refusals + 1 : 1;
      met.delete(name);
      met.set(name, { refusedAt, refusals, version: null, unchangedReads: 0 });
      evict(met);
    },
    onRead(name, version) {
      const meeting = met.size > 0 && met.get(name);
      if (!meeting) return;
      if (meeting.version === version) {
        if (++meeting.unchangedReads >= unchangedReadsMin) met.delete(name);
      } else if (meeting.version !== null) {
        meeting.unchangedReads = 0;
      }
    },
    isContended(name) {
      const meeting = met.size > 0 && met.get(name);
      if (!meeting || meeting.refusals < refusalsMin) return false;
      return elapsed() - meeting.refusedAt < refusalsApartMs;
    },
  };
}

function evict(map: Map<string, unknown>): void {
  if (map.size <= accountsMax) return;
  const [oldest = ""] = map.keys();
  map.delete(oldest);
}
