import { z } from "zod";
import { notFound } from "../base/errors.ts";
import { currency, decimal, idOf, time, userId } from "../base/fields.ts";
import { formatAmount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import { findAccounts } from "../ledger/authorization.ts";
import type { Project } from "../projects/schema.ts";
import { readBalances } from "./balances.ts";
import { listJoinsInto, readJoin, type WalletJoin } from "./join_rows.ts";
import { listConnections } from "./store.ts";
import { readWaysOf, walletExists } from "./ways.ts";

const consentSchema = z.object({
  by: z.enum(["owner", "operator"]),
  at: time,
  reason: z.string().optional().meta({ description: "Why the operator agrees for the owner." }),
}).nullable().meta({ description: "Null while this side has not agreed." });

/** A join as operators see it. */
export const joinSchema = z.object({
  from: idOf("per", "The wallet that becomes part of the other one."),
  into: idOf("per", "The wallet that remains."),
  status: z.enum(["asked", "joined"]),
  askedAt: time,
  consents: z.object({ from: consentSchema, into: consentSchema }),
}).meta({ id: "WalletJoin" });
/** A join as operators see it. */
export type JoinView = z.output<typeof joinSchema>;

/** A wallet as operators see it. */
export const walletSchema = z.object({
  id: idOf("per", "The wallet. Events call it `walletUserId`."),
  balances: z.array(z.object({ currency, balance: decimal, held: decimal })),
  users: z.array(z.object({
    projectId: idOf("pw", "The project."),
    user: userId,
    status: z.enum(["active", "revoked", "declined"]),
  })).meta({ description: "For whom its owner has decided something." }),
  devices: z.int().meta({ description: "Signed-in devices, at most 200." }),
  passkeys: z.int(),
  emails: z.int().meta({ description: "E-mail addresses that open it." }),
  join: joinSchema.nullable().meta({ description: "What it is to become part of, or is." }),
  parts: z.array(joinSchema).meta({
    description: "Wallets that are to become part of it, or are.",
  }),
}).meta({ id: "Wallet" });
/** A wallet as operators see it. */
export type WalletOfOperator = z.output<typeof walletSchema>;

/** Reads a wallet as operators see it. Throws 404 for an unknown one. */
export async function readWallet(
  deps: Pick<Deps, "kv" | "clock" | "holders">,
  id: string,
): Promise<WalletOfOperator> {
  const { kv } = deps;
  if (!await walletExists(kv, id)) throw notFound("wallet");
  const [balances, connections, ways, own, parts] = await Promise.all([
    readBalances(deps, id),
    listConnections(kv, id),
    readWaysOf(deps, id),
    readJoin(kv, id),
    listJoinsInto(kv, id),
  ]);
  return {
    id,
    balances: balances.map(({ currency, balance, held }) => ({
      currency,
      balance: formatAmount(balance),
      held: formatAmount(held),
    })),
    users: connections.map(({ projectId, user, authorization: { status } }) => ({
      projectId,
      user,
      status,
    })),
    ...ways,
    join: own && viewJoin(own.join),
    parts: parts.map(viewJoin),
  };
}

/** Returns the wallets that paid for a user, most recent first. */
export async function walletsOfUser(
  kv: Deps["kv"],
  project: Project,
  user: string,
): Promise<string[]> {
  const refs = await findAccounts(kv, project, user);
  const ids = refs.flatMap(({ wallet }) => wallet?.personId ? [wallet.personId] : []);
  return [...new Set(ids)];
}

/** Returns a join as operators see it. */
export function viewJoin({ from, into, isJoined, askedAt, consents }: WalletJoin): JoinView {
  const shown = (consent: WalletJoin["consents"]["from"]) =>
    consent && { ...consent, at: new Date(consent.at).toISOString() };
  return {
    from,
    into,
    status: isJoined ? "joined" : "asked",
    askedAt: new Date(askedAt).toISOString(),
    consents: { from: shown(consents.from), into: shown(consents.into) },
  };
}
