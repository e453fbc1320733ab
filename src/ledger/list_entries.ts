import { badRequest } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { Project } from "../projects/schema.ts";
import { allConnectionsPrefix, connectionsPrefix, ownEntriesPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { listByTime, type Listing, type ListingPage, type ListingQuery } from "../store/listing.ts";
import { listAfter } from "../store/scan.ts";
import { decodeEntry } from "./store.ts";
import { toActivity } from "./view.ts";

const connectionsPerRead = 500;

/** All entries of a project: in order of time, or wallet by wallet in the shared mode. */
export function listEntries(kv: Kv, project: Project): Listing {
  return project.mode === "default"
    ? (query) => listOfOwner(kv, project, { ...query, owner: project.id, wallet: null })
    : (query) => listOfWallets(kv, project, query);
}

function listOfOwner(
  kv: Kv,
  { id, currency }: Project,
  { owner, wallet, ...query }: ListingQuery & { owner: string; wallet: string | null },
): Promise<ListingPage> {
  if (query.after && !isId("act", query.after)) throw badPlace();
  const read = ({ value }: Row) => {
    const entry = value && decodeEntry(value);
    if (!entry || (entry.projectId ?? id) !== id) return null;
    const record: JsonObject = { ...toActivity(entry, currency), wallet };
    return { createdAt: entry.createdAt, record };
  };
  return listByTime(kv, { prefix: ownEntriesPrefix(owner), kind: "act", read }, query);
}

/** A place is a wallet's and an entry's id with a slash between; without an entry, its start. */
async function listOfWallets(
  kv: Kv,
  project: Project,
  query: ListingQuery,
): Promise<ListingPage> {
  const [wallet, after = ""] = query.after?.split("/") ??
    [await nextWallet(kv, project.id, null)];
  if (wallet === null || wallet === undefined) return { records: [], next: null };
  if (!isId("per", wallet)) throw badPlace();
  const own = { ...query, owner: wallet, wallet, after: after || null };
  const { records, next } = await listOfOwner(kv, project, own);
  if (next !== null) return { records, next: `${wallet}/${next}` };
  const following = await nextWallet(kv, project.id, wallet);
  return { records, next: following && `${following}/` };
}

/** The first wallet after that one whose person was ever asked by this project, or null. */
async function nextWallet(
  kv: Kv,
  projectId: string,
  wallet: string | null,
): Promise<string | null> {
  // A character that sorts behind every project's id.
  let after = wallet === null ? null : [...connectionsPrefix(wallet), "~"];
  for (;;) {
    const limit = connectionsPerRead;
    const rows: Row[] = await listAfter(kv, allConnectionsPrefix, { after, limit });
    // Old versions kept a connection also of whoever has no wallet.
    const found = rows.find(({ key }) => key[1] !== "" && key[2] === projectId);
    if (found) return String(found.key[1]);
    const last = rows.at(-1);
    if (!last || rows.length < limit) return null;
    after = [...last.key];
  }
}

function badPlace() {
  return badRequest("after", "'after' is not valid.");
}
