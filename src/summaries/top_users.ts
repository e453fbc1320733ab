import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, toAmount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import { commitUnlessMoved, type Eraser, eraseRows, type Erasure } from "../store/erase.ts";
import { accountKey, authorizationKey, topUsersKey, topUsersPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { monthOf } from "../base/period.ts";

/** Tracks who spends most, without reading every account. */
export interface TopUsers {
  /** Called with a user's use of this month so far, after it was written. */
  observe(projectId: string, user: string, use: MonthSpend): void;
  /**
   * Writes what was observed. What a dying process does not write is observed again with the next
   * charge.
   */
  flush(): Promise<void>;
}

/** What one user did in one month. */
interface MonthSpend {
  /** `YYYY-MM`, UTC. */
  month: string;
  /** Charged requests. */
  requests: number;
  /** Tokens of all classes. */
  tokens: number;
  spent: Amount;
}

/** A user among those who spent most. */
export interface TopUser extends Omit<MonthSpend, "month"> {
  user: string;
}

type StoredUser = [user: string, requests: number, tokens: number, spent: string];

/** The users of one project observed in one month since the last flush. */
interface PendingTopUsers {
  projectId: string;
  month: string;
  users: Map<string, TopUser>;
}

const topUsersMax = 100;
/** Two processes rarely write the same row at once, so this many attempts suffice. */
const attemptsMax = 8;

/**
 * Collects the users observed since the last flush, and merges them into the project's row. A
 * month's use only grows, so a row of 100 always holds the 100 who spent most of those observed:
 * anyone pushed out had 100 ahead of them, who are still ahead.
 */
export function createTopUsers({ kv, committer }: Pick<Deps, "kv" | "committer">): TopUsers {
  const seen = new Map<string, PendingTopUsers>();

  /**
   * A user observed late may have been erased since: then they have neither an account nor a grant.
   */
  async function withoutForgotten(projectId: string, ranked: TopUser[], known: Set<string>) {
    const rows = await Promise.all(ranked.map(async ({ user }) => {
      if (known.has(user)) return true;
      const keys = [accountKey(projectId, user), authorizationKey(projectId, user)];
      return (await kv.getMany(keys)).some(({ value }) => value !== null);
    }));
    return ranked.filter((_, at) => rows[at]);
  }

  async function merge({ projectId, month, users }: PendingTopUsers): Promise<void> {
    const key = topUsersKey(projectId, month);
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { value, version } = await kv.get(key);
      const merged = new Map(decode(value).map((top) => [top.user, top]));
      for (const [user, top] of users) {
        if ((merged.get(user)?.spent ?? -1n) <= top.spent) merged.set(user, top);
      }
      const known = new Set(decode(value).map(({ user }) => user));
      const ranked = [...merged.values()].sort(bySpent).slice(0, topUsersMax);
      const top = await withoutForgotten(projectId, ranked, known);
      const write = {
        checks: [{ key, version }],
        sets: [{ key, value: encode(top) }],
        deletes: [],
      };
      if ((await committer.commit(write)) !== null) return;
    }
  }

  return {
    observe(projectId, user, { month, requests, tokens, spent }) {
      const name = `${projectId} ${month}`;
      let found = seen.get(name);
      if (!found) seen.set(name, found = { projectId, month, users: new Map() });
      found.users.set(user, { user, requests, tokens, spent });
    },
    async flush() {
      for (const [name, found] of seen) {
        seen.delete(name);
        await merge(found);
      }
    },
  };
}

/** Reads the users who spent most in a month (`YYYY-MM`, UTC); at most 100, up to 15 s old. */
export async function readTopUsers(kv: Kv, projectId: string, month: string): Promise<TopUser[]> {
  return decode((await kv.get(topUsersKey(projectId, month))).value);
}

/**
 * Replaces a user by the pseudonym in the rows of all months. The rows of this month and the last
 * are rewritten even if they do not name the user, so that a concurrent merge which has just read
 * the user has to read again.
 */
export function createTopUsersEraser(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): Eraser {
  const named = eraseRows({
    name: "topUsers",
    kv,
    committer,
    prefix: ({ projectId }) => topUsersPrefix(projectId),
    rewrite({ key, value }, erasure) {
      const ranked = decode(value);
      if (!ranked.some((top) => top.user === erasure.user)) return null;
      return { sets: [{ key, value: encode(rename(ranked, erasure)) }], deletes: [] };
    },
  });

  /** Returns false when a merge came in between. */
  async function writeAnew(erasure: Erasure, month: string): Promise<boolean> {
    const row = await kv.get(topUsersKey(erasure.projectId, month));
    const value = encode(rename(decode(row.value), erasure));
    return await commitUnlessMoved(committer, row, {
      sets: [{ key: row.key, value }],
      deletes: [],
    });
  }

  return {
    ...named,
    async page(erasure, place, budget) {
      const page = await named.page(erasure, place, budget);
      if (page.next !== null || page.waiting) return page;
      const month = monthOf(clock.now());
      const before = monthOf(Date.parse(`${month}-01`) - 1);
      const landed = [await writeAnew(erasure, before), await writeAnew(erasure, month)];
      return landed.includes(false) ? { ...page, waiting: true } : page;
    },
  };
}

function rename(ranked: readonly TopUser[], { user, pseudonym }: Erasure): TopUser[] {
  return ranked.map((top) => (top.user === user ? { ...top, user: pseudonym } : top));
}

function bySpent(one: TopUser, other: TopUser): number {
  return one.spent === other.spent ? 0 : one.spent < other.spent ? 1 : -1;
}

function encode(users: readonly TopUser[]): Uint8Array {
  return toBytes(
    users.map(({ user, requests, tokens, spent }): StoredUser => [
      user,
      requests,
      tokens,
      spent.toString(),
    ]),
  );
}

function decode(bytes: Uint8Array | null): TopUser[] {
  if (!bytes) return [];
  return fromBytes<StoredUser[]>(bytes).map(([user, requests, tokens, spent]) => ({
    user,
    requests,
    tokens,
    spent: toAmount(BigInt(spent)),
  }));
}
