import { z } from "zod";
import { fromBase64Url, toBase64Url } from "../base/base64.ts";
import { badCursor, notFound } from "../base/errors.ts";
import { currency, decimal, time, userId } from "../base/fields.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { formatAmount } from "../base/money.ts";
import { checkUserId } from "../base/user_id.ts";
import type { Project } from "../projects/schema.ts";
import {
  accountKey,
  authorizationKey,
  authorizationsPrefix,
  ownAccountsPrefix,
} from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { listAfter, readOrNull } from "../store/scan.ts";
import { type Account, type Hold, parseAccount } from "./account.ts";
import { type Authorization, decodeAuthorization } from "./authorization.ts";
import type { HasEnded } from "./hold_end.ts";
import { balanceFields, settledNow, viewBalance } from "./api/view.ts";
import { type Listing, rowsPerPage } from "../store/listing.ts";

const authorizationSchema = z.object({
  status: z.enum(["active", "revoked", "declined"]),
  dailyCap: decimal.meta({ description: "The most that the person allows for one day (UTC)." }),
  decidedAt: time.meta({ description: "The person's last decision." }),
});
/** A person's permission for one user, as the project sees it. */
type AuthorizationView = z.output<typeof authorizationSchema>;

/** One user of a project, with their money. */
export const userSchema = z.object({
  user: userId,
  currency,
  ...balanceFields,
  entries: z.int().min(0).nullable().meta({
    description: "The number of entries; null for a wallet, which serves other projects too.",
  }),
  lastActivityId: z.string().nullable(),
  authorization: authorizationSchema.nullable().meta({
    description: "In the shared mode: what the wallet's owner allows.",
  }),
}).meta({ id: "User" });
/** One user of a project, with their money. */
export type UserView = z.output<typeof userSchema>;

/** A user, including the money held for running calls. */
export const userDetailSchema = userSchema.extend({
  holds: z.array(z.object({ id: z.string(), amount: decimal, expiresAt: time })).meta({
    description: "Money held for running calls.",
  }),
}).meta({ id: "UserDetail" });
/** A user, including the money held for running calls. */
export type UserDetail = z.output<typeof userDetailSchema>;

/** Selects a page of users: those whose ids start with `prefix`, from `cursor` on. */
interface UserQuery {
  limit: number;
  cursor: string | undefined;
  prefix: string;
  hasEnded: HasEnded;
}

/**
 * Returns a page of a project's users, in order of their ids as UTF-8. In the default mode these
 * are the accounts, in the shared mode those for whom a person has decided anything. It costs as
 * many reads as it returns users. Throws 400 for an invalid cursor.
 */
export async function listUsers(
  kv: Kv,
  project: Project,
  { limit, cursor, prefix, hasEnded }: UserQuery,
): Promise<{ users: UserView[]; nextCursor: string | null }> {
  const first = cursor === undefined ? prefix : readCursor(cursor);
  const { under, at } = placeOfUsers(project);
  const start = first === "" ? {} : { start: at(first) };
  const rows = await kv.list({ prefix: under, ...start, limit: limit + 1 });
  // Ids with the same start are adjacent, so the first one that differs ends the page.
  const found = rows.filter((row) => userOf(row).startsWith(prefix));
  const next = found[limit];
  return {
    users: (await readDetails(kv, project, { rows: found.slice(0, limit), hasEnded })).map(
      withoutHolds,
    ),
    nextCursor: next ? toBase64Url(toBytes(userOf(next))) : null,
  };
}

/** Returns the users after the given one, as `listUsers` does; null starts at the beginning. */
async function listUsersAfter(
  kv: Kv,
  project: Project,
  { after, limit, hasEnded }: { after: string | null; limit: number; hasEnded: HasEnded },
): Promise<UserView[]> {
  const { under, at } = placeOfUsers(project);
  const rows = await listAfter(kv, under, { after: after === null ? null : at(after), limit });
  return (await readDetails(kv, project, { rows, hasEnded })).map(withoutHolds);
}

/** Reads one user's current state. Throws 404 for one that the project has never had. */
export async function readUser(
  kv: Kv,
  project: Project,
  { user, hasEnded }: { user: string; hasEnded: HasEnded },
): Promise<UserDetail> {
  const row = await kv.get(placeOfUsers(project).at(user));
  const [detail] = row.value ? await readDetails(kv, project, { rows: [row], hasEnded }) : [];
  if (!detail) throw notFound("user");
  return detail;
}

function placeOfUsers({ id, mode }: Project): { under: Key; at: (user: string) => Key } {
  return mode === "default"
    ? { under: ownAccountsPrefix(id), at: (user) => accountKey(id, user) }
    : { under: authorizationsPrefix(id), at: (user) => authorizationKey(id, user) };
}

const userOf = ({ key }: Row): string => String(key[2]);

async function readDetails(
  kv: Kv,
  project: Project,
  { rows, hasEnded }: { rows: readonly Row[]; hasEnded: HasEnded },
): Promise<UserDetail[]> {
  if (project.mode === "default") {
    return rows.map((row) => {
      const account = parseAccount(row.value);
      const { seq: entries, last: lastActivityId } = account;
      const own = { entries, lastActivityId, authorization: null };
      return {
        ...viewAccount(project, userOf(row), { account, holds: account.holds, hasEnded }),
        ...own,
      };
    });
  }
  const decided = rows.flatMap((row) =>
    row.value ? [{ user: userOf(row), authorization: decodeAuthorization(row.value) }] : []
  );
  const wallets = decided.length === 0 ? [] : await kv.getMany(
    decided.map(({ authorization }) => accountKey(authorization.personId, project.currency)),
  );
  return decided.map(({ user, authorization }, at) => {
    // A project that may not spend from a wallet may not see its balance.
    const { status, connectionId } = authorization;
    const account = parseAccount(status === "active" ? wallets[at]?.value ?? null : null);
    const holds = account.holds.filter((hold) => hold.connectionId === connectionId);
    return {
      ...viewAccount(project, user, { account, holds, hasEnded }),
      entries: null,
      lastActivityId: null,
      authorization: viewAuthorization(authorization),
    };
  });
}

function viewAccount(
  { currency }: Project,
  user: string,
  { account, holds, hasEnded }: {
    account: Account;
    holds: readonly Hold[];
    hasEnded: HasEnded;
  },
) {
  const { balance, held } = settledNow(account, hasEnded);
  return {
    user,
    ...viewBalance(balance, held, currency),
    currency,
    holds: holds.filter((hold) => !hasEnded(hold)).map(({ id, amount, expiresAt }) => ({
      id,
      amount: formatAmount(amount),
      expiresAt: new Date(expiresAt).toISOString(),
    })),
  };
}

function viewAuthorization({ status, dailyCap, decidedAt }: Authorization): AuthorizationView {
  return { status, dailyCap, decidedAt: new Date(decidedAt).toISOString() };
}

function withoutHolds({ holds: _, ...view }: UserDetail): UserView {
  return view;
}

function readCursor(cursor: string): string {
  const bytes = cursor.length <= 1024 ? fromBase64Url(cursor) : null;
  const user = readOrNull(bytes, (found) => checkUserId(fromBytes<unknown>(found), "cursor"));
  if (user !== null) return user;
  throw badCursor();
}

/** Lists all users of a project with their current balances, in order of their ids. */
export function listAllUsers(kv: Kv, project: Project, endedBy: () => HasEnded): Listing {
  return async ({ after }) => {
    const page = { after, limit: rowsPerPage, hasEnded: endedBy() };
    const users = await listUsersAfter(kv, project, page);
    return {
      records: users.map(({ balanceFormatted: _, ...user }) => ({
        ...user,
        authorization: user.authorization && { ...user.authorization },
      })),
      next: users.length === rowsPerPage ? users.at(-1)?.user ?? null : null,
    };
  };
}
