import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { periodAt } from "../base/period.ts";
import type { Project } from "../projects/schema.ts";
import type { StoredPeriodSpend } from "./period_spend.ts";
import { authorizationKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import type { RateCounters } from "./spend_limits.ts";

/** A person who pays, or paid, and what their charges are counted under. */
export interface Payer {
  personId: string;
  connectionId: string;
}

/**
 * Who paid before, and what was charged to them on the last day: the day goes on when they return.
 */
export interface FormerPayer extends Payer {
  /** Absent where an old version kept it. */
  day?: string;
  spent?: string;
}

/** What a person allows one user of one project to spend of their wallet. */
export interface Authorization extends Payer {
  status: "active" | "revoked" | "declined";
  /** Most in one day, UTC: a decimal string. */
  dailyCap: string;
  /** The day of the last charge, `YYYY-MM-DD`, and what was charged in it. */
  day: string;
  spent: string;
  /** In ms. The person's last decision: links that were made before it have ended. */
  decidedAt: number;
  /** The request that it answered; null when it answered none. */
  requestId: string | null;
  /** Who paid for this user before, the last one first; absent when nobody did. */
  former?: readonly FormerPayer[];
  /** Of the project's limits; absent where there are none. */
  counters?: RateCounters;
  /** What the user did this month; absent before the first charge. */
  use?: StoredPeriodSpend;
}

/** Reads an authorization's row. */
export function decodeAuthorization(bytes: Uint8Array): Authorization {
  return fromBytes<Authorization>(bytes);
}

/** An authorization's row. */
export function encodeAuthorization(authorization: Authorization): Uint8Array {
  return toBytes(authorization);
}

/** The last decision about this user, or null. */
export async function readAuthorization(
  kv: Kv,
  projectId: string,
  user: string,
): Promise<{ authorization: Authorization; version: string | null } | null> {
  const { value, version } = await kv.get(authorizationKey(projectId, user));
  return value && { authorization: decodeAuthorization(value), version };
}

type PayingProject = Pick<Project, "id" | "mode" | "currency">;

/** The user's account in this project; null when a wallet would pay, and nobody allows that. */
export function findAccount(
  kv: Kv,
  project: PayingProject,
  user: string,
): Promise<AccountRef | null> {
  return resolveAccount(kv, { project, user, mayHaveEnded: false });
}

/** As `findAccount`, also when the leave has ended: to give back, or to look, needs none. */
export function findLastAccount(
  kv: Kv,
  project: PayingProject,
  user: string,
): Promise<AccountRef | null> {
  return resolveAccount(kv, { project, user, mayHaveEnded: true });
}

/** Every account that this user's charges may be in, the last one first. */
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

/** Who paid before a person who now is to pay. */
export function formerPayers(last: Authorization | null, personId: string): readonly FormerPayer[] {
  if (last === null) return [];
  const { former = [], connectionId, day, spent } = last;
  return [{ personId: last.personId, connectionId, day, spent }, ...former]
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

/** What may still be spent today, less what is held. */
export function allowanceLeft(
  { dailyCap, day, spent }: Authorization,
  { held, now }: { held: Amount; now: number },
): Amount {
  const cap = fromDecimal(dailyCap);
  const today = day === periodAt(now, "day", day) ? fromDecimal(spent) : zero;
  return toAmount(cap > today + held ? cap - today - held : 0n);
}

/** The authorization after a charge: of who paid before, where that is whose connection it is. */
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
  { day: last = "", spent = "0" }: FormerPayer,
  { amount, now }: { amount: Amount; now: number },
): { day: string; spent: string } {
  const day = periodAt(now, "day", last);
  const before = last === day ? fromDecimal(spent) : zero;
  return { day, spent: formatAmount(toAmount(before + amount)) };
}
