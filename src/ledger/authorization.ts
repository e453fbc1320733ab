import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal, toAmount } from "../base/money.ts";
import { periodAt } from "../base/period.ts";
import type { Project } from "../projects/schema.ts";
import { countedIn, type EarlierCount, leftBehind } from "./earlier_counts.ts";
import type { StoredPeriodSpend } from "./period_spend.ts";
import { authorizationKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { AccountRef, RateCounters } from "./account.ts";

/** A person who pays, or paid, and the connection that their charges are counted under. */
interface Payer {
  personId: string;
  connectionId: string;
}

/**
 * A former payer, and what they were charged on the last day: the daily cap applies if they return.
 */
export interface FormerPayer extends Payer {
  /** The day of the last charge, `YYYY-MM-DD`, and what was charged on it. */
  day: string;
  spent: string;
  /** What they were charged on other days; absent where nothing is known. */
  earlier?: readonly EarlierCount[];
}

/** What a person allows one user of one project to spend from their wallet. */
export interface Authorization extends FormerPayer {
  status: "active" | "revoked" | "declined";
  /** The most for one day (UTC), as a decimal string. */
  dailyCap: string;
  /** When the person last decided, in ms. Links created before then have expired. */
  decidedAt: number;
  /** The authorization request that was decided; null when there was none. */
  requestId: string | null;
  /** Who paid for this user before, most recent first; absent when nobody did. */
  former?: readonly FormerPayer[];
  /** Counters of the project's limits; absent where there are none. */
  counters?: RateCounters;
  /** The user's use of this month; absent before the first charge. */
  use?: StoredPeriodSpend;
  /** The last number of a change of the user's balance; absent before the first, and in 0.9.0. */
  moves?: number;
}

/** Decodes an authorization's row. */
export function decodeAuthorization(bytes: Uint8Array): Authorization {
  return fromBytes<Authorization>(bytes);
}

/** Encodes an authorization's row. */
export function encodeAuthorization(authorization: Authorization): Uint8Array {
  return toBytes(authorization);
}

/** Reads the last decision about this user, or null. */
export async function readAuthorization(
  kv: Kv,
  projectId: string,
  user: string,
): Promise<{ authorization: Authorization; version: string | null } | null> {
  const { value, version } = await kv.get(authorizationKey(projectId, user));
  return value && { authorization: decodeAuthorization(value), version };
}

type PayingProject = Pick<Project, "id" | "mode" | "currency">;

/**
 * Returns the user's account in this project; null when a wallet would have to pay and no
 * authorization is active.
 */
export function findAccount(
  kv: Kv,
  project: PayingProject,
  user: string,
): Promise<AccountRef | null> {
  return resolveAccount(kv, { project, user, mayHaveEnded: false });
}

/** Like `findAccount`, but also after the authorization has ended: refunds and reads need none. */
export function findLastAccount(
  kv: Kv,
  project: PayingProject,
  user: string,
): Promise<AccountRef | null> {
  return resolveAccount(kv, { project, user, mayHaveEnded: true });
}

/** Returns every account that may hold charges of this user, the most recent first. */
export async function findAccounts(
  kv: Kv,
  { id: projectId, mode, currency }: PayingProject,
  user: string,
): Promise<AccountRef[]> {
  if (mode === "default") return [{ projectId, user }];
  const found = await readAuthorization(kv, projectId, user);
  if (!found) return [];
  return [found.authorization, ...(found.authorization.former ?? [])].map((
    { personId, connectionId },
  ) => ({ projectId, user, wallet: { personId, currency, connectionId } }));
}

const formerMax = 20;

/** Returns the list of former payers for when `personId` becomes the payer. */
export function formerPayers(last: Authorization | null, personId: string): readonly FormerPayer[] {
  if (last === null) return [];
  const { former = [], connectionId } = last;
  return [{ personId: last.personId, connectionId, ...chargesOf(last) }, ...former]
    .filter((one) => one.personId !== "" && one.personId !== personId)
    .slice(0, formerMax);
}

async function resolveAccount(
  kv: Kv,
  { project: { id: projectId, mode, currency }, user, mayHaveEnded }: {
    project: PayingProject;
    user: string;
    mayHaveEnded: boolean;
  },
): Promise<AccountRef | null> {
  if (mode === "default") return { projectId, user };
  const found = await readAuthorization(kv, projectId, user);
  if (!found || !(mayHaveEnded || found.authorization.status === "active")) return null;
  const { personId, connectionId } = found.authorization;
  return { projectId, user, wallet: { personId, currency, connectionId } };
}

/** What a payer was charged, by day. */
export function chargesOf(
  { day, spent, earlier }: FormerPayer,
): Pick<FormerPayer, "day" | "spent" | "earlier"> {
  return { day, spent, ...(earlier ? { earlier } : {}) };
}

/** Returns what a payer was charged on the day of `now`, as a decimal string. */
export function chargedToday(
  { day, spent, earlier = [] }: FormerPayer,
  now: number,
): string {
  const today = periodAt(now, "day", day);
  return today === day ? spent : countedIn(today, earlier)?.[1] ?? "0";
}

/** Returns what may still be spent today, less what is held. */
export function allowanceLeft(
  authorization: Authorization,
  { held, now }: { held: Amount; now: number },
): Amount {
  const cap = fromDecimal(authorization.dailyCap);
  const today = fromDecimal(chargedToday(authorization, now));
  return toAmount(cap > today + held ? cap - today - held : 0n);
}

/**
 * Returns the authorization after a charge; the charge counts for a former payer if the connection
 * is theirs.
 */
export function afterCharge(
  authorization: Authorization,
  charge: { connectionId: string; amount: Amount; now: number },
): Authorization {
  const after = <P extends FormerPayer>(payer: P): P =>
    payer.connectionId === charge.connectionId ? { ...payer, ...spentAfter(payer, charge) } : payer;
  const { former } = authorization;
  return { ...after(authorization), ...(former ? { former: former.map(after) } : {}) };
}

function spentAfter(
  payer: FormerPayer,
  { amount, now }: { amount: Amount; now: number },
): { day: string; spent: string; earlier?: readonly EarlierCount[] } {
  const { day: last, spent, earlier = [] } = payer;
  const day = periodAt(now, "day", last);
  const before = fromDecimal(chargedToday(payer, now));
  const after = { day, spent: formatAmount(toAmount(before + amount)) };
  return day === last ? after : { ...after, earlier: leftBehind([last, spent], earlier, day) };
}
