import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, toAmount, zero } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import { commitUnlessMoved, type Eraser, eraseRows, type Erasure } from "../store/erase.ts";
import { accountKey, authorizationKey, topUsersKey, topUsersPrefix } from "../store/keys.ts";
import { emptyWrite, type Kv } from "../store/kv.ts";
import type { ProjectRows } from "../store/project_rows.ts";
import { monthOf } from "../base/period.ts";

/** Tracks who spends most, without reading every account. */
export interface TopUsers {
  /** Called with a user's use so far, after it was written. */
  observe(projectId: string, user: string, use: ObservedUse): void;
  /**
   * Writes what was observed. What a dying process does not write is observed again with the next
   * charge of the same period.
   */
  flush(): Promise<void>;
}

/** The use of one user in one month. */
interface MonthSpend {
  /** `YYYY-MM`, UTC. */
  month: string;
  /** Charged requests. */
  requests: number;
  /** Tokens of all classes. */
  tokens: number;
  spent: Amount;
}

/** The use of one user in the month, the day and the hour of their last use. */
interface ObservedUse extends MonthSpend {
  /** `YYYY-MM-DD`, UTC. */
  day: string;
  daySpent: Amount;
  /** In hours since 1970. */
  hour: number;
  hourSpent: Amount;
}

/** A user among those who spent most in a month. */
interface TopUser extends Omit<MonthSpend, "month"> {
  user: string;
}

/** A user among those who spent most in some time. */
export interface TopSpender {
  user: string;
  /** What is known to be spent: all of it, where `atMost` is the same. */
  spent: Amount;
  /** More is not possible: in full hours or days that do not list the user, they spent less. */
  atMost: Amount;
}

/** Requests and tokens are counted for months only; rows of days and hours have zeros. */
type StoredUser = [user: string, requests: number, tokens: number, spent: string];

/** The users of one project observed in one period since the last flush. */
interface PendingTopUsers {
  projectId: string;
  period: string;
  users: Map<string, TopUser>;
}

const topUsersMax = 100;
/** Two processes rarely write the same row at once, so this many attempts suffice. */
const attemptsMax = 8;
const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;

const dayPeriod = (day: string) => `d${day}`;
const hourPeriod = (hour: number) => `h${new Date(hour * hourMs).toISOString().slice(0, 13)}`;

/**
 * Collects the users observed since the last flush, and merges them into the project's rows of the
 * month, the day and the hour. Use in a period only grows, so a row of 100 always holds the 100 who
 * spent most of those observed: anyone pushed out had 100 ahead of them, who are still ahead.
 */
export function createTopUsers({ kv, committer }: Pick<Deps, "kv" | "committer">): TopUsers {
  /** By project and user: the last use, and the last uses of periods that have ended since. */
  const seen = new Map<string, Map<string, ObservedUse[]>>();

  /** Takes what was observed, by row. */
  function takePending(): Iterable<PendingTopUsers> {
    const rows = new Map<string, PendingTopUsers>();
    for (const [projectId, users] of seen) {
      for (const [user, uses] of users) {
        for (const use of uses) {
          for (const [period, top] of periodsOf(use)) {
            const name = `${projectId} ${period}`;
            let row = rows.get(name);
            if (!row) rows.set(name, row = { projectId, period, users: new Map() });
            // Later uses come last.
            row.users.set(user, { user, ...top });
          }
        }
      }
    }
    seen.clear();
    return rows.values();
  }

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

  async function merge({ projectId, period, users }: PendingTopUsers): Promise<void> {
    const key = topUsersKey(projectId, period);
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
    observe(projectId, user, use) {
      let users = seen.get(projectId);
      if (!users) seen.set(projectId, users = new Map());
      const uses = users.get(user);
      if (!uses) return void users.set(user, [use]);
      // A day or a month ends with its last hour.
      const isSameHour = uses.at(-1)?.hour === use.hour;
      if (isSameHour) uses[uses.length - 1] = use;
      else uses.push(use);
    },
    async flush() {
      for (const pending of takePending()) await merge(pending);
    },
  };
}

/** Returns what a use counts as in each of its periods. */
function periodsOf(
  { month, requests, tokens, spent, day, daySpent, hour, hourSpent }: ObservedUse,
): [period: string, Omit<TopUser, "user">][] {
  const others = { requests: 0, tokens: 0 };
  return [
    [month, { requests, tokens, spent }],
    [dayPeriod(day), { ...others, spent: daySpent }],
    [hourPeriod(hour), { ...others, spent: hourSpent }],
  ];
}

/** Up to so long, hours are added up, and else whole days. */
const byHourMaxMs = 2 * dayMs;
const rowsPerRead = 500;

/**
 * Returns who spent most from `from` until before `to`, in ms since 1970, at most 100: by hour for
 * up to two days, by day (UTC) for longer. A row lists the first 100 users of its hour or day, so
 * each sum is between two bounds, which are the same where no row is full. Up to 15 s old.
 */
export async function readTopSpenders(
  kv: Kv,
  projectId: string,
  { from, to }: { from: number; to: number },
): Promise<TopSpender[]> {
  const [first, last] = to - from <= byHourMaxMs
    ? [hourPeriod(Math.floor(from / hourMs)), hourPeriod(Math.ceil(to / hourMs))]
    : [from, to + dayMs - 1].map((at) => dayPeriod(new Date(at).toISOString().slice(0, 10)));
  const rows = await kv.list({
    prefix: topUsersPrefix(projectId),
    start: topUsersKey(projectId, first ?? ""),
    end: topUsersKey(projectId, last ?? ""),
    limit: rowsPerRead,
  });
  const found = new Map<string, { spent: Amount; unlisted: Amount }>();
  /** What a user may have spent in all full rows at most, if none of them lists the user. */
  let unlisted = zero;
  for (const top of rows.map(({ value }) => decode(value))) {
    const least = top.length < topUsersMax ? zero : top.at(-1)?.spent ?? zero;
    unlisted = toAmount(unlisted + least);
    for (const { user, spent } of top) {
      const known = found.get(user) ?? { spent: zero, unlisted: zero };
      known.spent = toAmount(known.spent + spent);
      known.unlisted = toAmount(known.unlisted - least);
      found.set(user, known);
    }
  }
  return [...found].map(([user, { spent, unlisted: listed }]) => ({
    user,
    spent,
    atMost: toAmount(spent + unlisted + listed),
  })).sort(bySpent).slice(0, topUsersMax);
}

/** Reads the users who spent most in a month (`YYYY-MM`, UTC); at most 100, up to 15 s old. */
export async function readTopUsers(kv: Kv, projectId: string, month: string): Promise<TopUser[]> {
  return decode((await kv.get(topUsersKey(projectId, month))).value);
}

/**
 * Replaces a user by the pseudonym in the rows of all periods. The rows of the current periods and
 * those before are rewritten even if they do not name the user, so that a concurrent merge which
 * has just read the user has to read again.
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
  async function writeAnew(erasure: Erasure, period: string): Promise<boolean> {
    const row = await kv.get(topUsersKey(erasure.projectId, period));
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
      for (const period of periodsAt(clock.now())) {
        if (!(await writeAnew(erasure, period))) return { ...page, waiting: true };
      }
      return page;
    },
  };
}

/** The current month, day and hour, and those before. */
function periodsAt(now: number): string[] {
  const month = monthOf(now);
  const hour = Math.floor(now / hourMs);
  return [
    monthOf(Date.parse(`${month}-01`) - 1),
    month,
    ...[now - dayMs, now].map((at) => dayPeriod(new Date(at).toISOString().slice(0, 10))),
    ...[hour - 1, hour].map(hourPeriod),
  ];
}

const keptDays = { d: 400, h: 100 } as const;
const rowsPerPage = 100;

/** Creates the removal of old rows of days and hours. */
export function createTopUsersRemoval(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): readonly ProjectRows[] {
  return Object.entries(keptDays).map(([period, days]) => ({
    kind: "top_users",
    async removePage(project, now) {
      const prefix = topUsersPrefix(String(project.key[1]));
      const firstKept = new Date(now - days * dayMs).toISOString().slice(0, 10);
      const rows = await kv.list({
        prefix,
        start: [...prefix, period],
        end: [...prefix, `${period}${firstKept}`],
        limit: rowsPerPage,
      });
      const deletes = rows.map(({ key }) => key);
      if (deletes.length > 0) await committer.commit({ ...emptyWrite(), deletes });
      const last = String(deletes.at(-1)?.[2] ?? "").slice(1, 11);
      return {
        count: deletes.length,
        isMore: deletes.length === rowsPerPage,
        endedAt: last ? Date.parse(last) + days * dayMs : now,
      };
    },
  }));
}

function rename(ranked: readonly TopUser[], { user, pseudonym }: Erasure): TopUser[] {
  return ranked.map((top) => (top.user === user ? { ...top, user: pseudonym } : top));
}

function bySpent(one: { spent: Amount }, other: { spent: Amount }): number {
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
