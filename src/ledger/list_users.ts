import type { JsonObject } from "../base/json.ts";
import type { Project } from "../projects/schema.ts";
import { authorizationsPrefix, ownAccountsPrefix } from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { type Listing, rowsPerPage } from "../store/listing.ts";
import { listAfter } from "../store/scan.ts";
import { type Account, decodeAccount } from "./account.ts";
import { decodeAuthorization } from "./authorization.ts";
import { readAccount } from "./store.ts";
import { settledAt, viewBalance } from "./view.ts";

/**
 * All users of a project with their balances as they count now, by name. In the shared mode: those
 * whom anyone was asked to pay for, with the wallet that pays and what is in it.
 */
export function listUsers(kv: Kv, project: Project, now: () => number): Listing {
  const { id, currency, mode } = project;
  const own = (row: Row) => viewUser(row, decodeAccount(row.value), { currency, now: now() });
  const inWallet = async (row: Row) => {
    if (!row.value) return { user: String(row.key[2]), currency };
    const { personId, connectionId, status, dailyCap } = decodeAuthorization(row.value);
    const user = String(row.key[2]);
    const wallet = { personId, currency, connectionId };
    // A wallet is no business of a project that may not charge it.
    if (status !== "active") return { user, currency, wallet: null, authorization: status };
    const account = await readAccount(kv, { projectId: id, user, wallet });
    const { entries: _, lastActivityId: __, ...view } = viewUser(row, account, {
      currency,
      now: now(),
    });
    return { ...view, wallet: personId, authorization: status, dailyCap };
  };
  return mode === "default"
    ? (query) => listRows(kv, ownAccountsPrefix(id), query.after, own)
    : (query) => listRows(kv, authorizationsPrefix(id), query.after, inWallet);
}

async function listRows(
  kv: Kv,
  prefix: Key,
  place: string | null,
  view: (row: Row) => JsonObject | Promise<JsonObject>,
) {
  const after = place === null ? null : [...prefix, place];
  const rows = await listAfter(kv, prefix, { after, limit: rowsPerPage });
  const last = rows.at(-1);
  return {
    records: await Promise.all(rows.map(view)),
    next: last && rows.length === rowsPerPage ? String(last.key.at(-1)) : null,
  };
}

function viewUser(
  { key }: Row,
  account: Account,
  { currency, now }: { currency: string; now: number },
): JsonObject {
  const { balance, held } = settledAt(account, now);
  const { balanceFormatted: _, ...amounts } = viewBalance(balance, held, currency);
  const { seq: entries, last: lastActivityId } = account;
  return { user: String(key[2]), currency, ...amounts, entries, lastActivityId };
}
