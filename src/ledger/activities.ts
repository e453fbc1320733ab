import { tokenClassRows } from "../base/token_classes.ts";
import { badCursor, badRequest } from "../base/errors.ts";
import type { EntryKind } from "../base/entry_kinds.ts";
import { isId } from "../base/ids.ts";
import { csvLine, csvRecord } from "../base/csv.ts";
import type { Project } from "../projects/schema.ts";
import type { Kv, Row } from "../store/kv.ts";
import { accountLocation, type AccountRef } from "./account.ts";
import { findAccounts } from "./authorization.ts";
import type { Entry } from "./entry.ts";
import { decodeEntry, readAccount, readEntry } from "./store.ts";
import type { JsonObject } from "../base/json.ts";
import { allConnectionsPrefix, connectionsPrefix, ownEntriesPrefix } from "../store/keys.ts";
import { listByTime, type Listing, type ListingPage, type ListingQuery } from "../store/listing.ts";
import { listAfter } from "../store/scan.ts";
import { activityRecord } from "./api/view.ts";

/** One page of a user's entries, newest first, and where the next page starts. */
interface ActivityPage {
  entries: Entry[];
  nextCursor: string | null;
}

/**
 * Reads at most this many entries a page. In a wallet that other projects use too, a page may hold
 * fewer than asked for; its cursor leads on.
 */
const readMax = 500;

/**
 * Walks an account's entries backwards from its last one, or from `cursor`. Entries never change
 * and new ones come before the first page, so pages have no gaps and no repeats. Throws 400 for a
 * cursor that does not belong to this user.
 */
export async function listActivities(
  kv: Kv,
  ref: AccountRef,
  { limit, cursor, whole = false, kind = null, since = -Infinity }: {
    limit: number;
    cursor: string | undefined;
    /** Only entries of this kind: a page may hold fewer than asked for, and lead on. */
    kind?: EntryKind | null;
    /** The list ends at the first entry before this time, in ms since 1970. */
    since?: number;
    /** In a wallet: includes entries of other projects, which only the wallet's owner may see. */
    whole?: boolean;
  },
): Promise<ActivityPage> {
  if (cursor !== undefined && !isId("act", cursor)) throw badCursor();
  const { owner } = accountLocation(ref);
  const entries: Entry[] = [];
  let next = cursor ?? (await readAccount(kv, ref)).last;
  for (let read = 0; next !== null && entries.length < limit && read < readMax; read++) {
    const entry: Entry | null = await readEntry(kv, owner, next);
    const mine = ref.wallet ? entry?.projectId !== undefined : entry?.user === ref.user;
    if (!entry || !mine) throw badCursor();
    if (entry.createdAt < since) return { entries, nextCursor: null };
    // A project must not see what other projects took from a wallet.
    const isShown = whole || !ref.wallet || isOwn(entry, ref);
    if (isShown && (kind === null || entry.kind === kind)) entries.push(entry);
    next = entry.prev;
  }
  return { entries, nextCursor: next };
}

/** Finds a user's activity in whichever account ever paid for them; null when there is none. */
export async function findActivity(
  kv: Kv,
  project: Project,
  { user, activityId }: { user: string; activityId: string },
): Promise<{ ref: AccountRef; entry: Entry } | null> {
  for (const ref of await findAccounts(kv, project, user)) {
    const entry = await readEntry(kv, accountLocation(ref).owner, activityId);
    if (entry) return { ref, entry };
  }
  return null;
}

function isOwn({ projectId, user }: Entry, ref: AccountRef): boolean {
  return projectId === ref.projectId && user === ref.user;
}

interface EntryColumn {
  /** A field of an activity, or a field of that field. */
  field: string;
  /** The column's header in the CSV of a user's activities; null where only the export has it. */
  userHeader: string | null;
}

const column = (field: string, userHeader: string | null = field): EntryColumn => ({
  field,
  userHeader,
});

/** The columns of entries as CSV, in order: all of them in the export, some in a user's list. */
const columns: readonly EntryColumn[] = [
  column("id"),
  column("createdAt"),
  column("kind"),
  column("user"),
  column("amount"),
  column("delta"),
  column("currency"),
  column("balanceAfter"),
  column("shortfall"),
  column("idempotencyKey"),
  column("refundedActivityId", null),
  column("wallet", null),
  column("usage.model", "model"),
  column("usage.requestId", null),
  column("usage.source", null),
  ...tokenClassRows.map(({ field }) => column(`usage.${field}`, null)),
  column("usage.endpoint", null),
  column("usage.servedModel", null),
  column("usage.serviceTier", null),
  column("usage.upstreamCost", null),
  column("usage.margin", null),
  column("usage.images", null),
  column("usage.characters", null),
  column("usage.audioSeconds", null),
  column("usage.upstream", null),
  column("usage.attempts", null),
  column("usage.cached", null),
  column("reason"),
  column("actor.type", "actorType"),
  column("actor.id", "actorId"),
  column("metadata"),
];

/** The columns of exported entries: fields of the records, and fields of those. */
export const entryExportColumns: readonly string[] = columns.map(({ field }) => field);

const userColumns = columns.filter(({ userHeader }) => userHeader !== null);

/** A user's entries as CSV (RFC 4180), with a header line. */
export function entriesToCsv(entries: readonly Entry[], currency: string): string {
  const fields = userColumns.map(({ field }) => field);
  const rows = entries.map((entry) => csvRecord(activityRecord(entry, currency), fields));
  return [csvLine(userColumns.map(({ userHeader }) => userHeader)), ...rows].join("");
}

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
    const record: JsonObject = { ...activityRecord(entry, currency), wallet };
    return { createdAt: entry.createdAt, record };
  };
  return listByTime(kv, { prefix: ownEntriesPrefix(owner), kind: "act", read }, query);
}

/**
 * Lists entries wallet by wallet. A position is a wallet id and an entry id, separated by a slash;
 * without an entry id, the wallet's start.
 */
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

/** The first wallet after the given one that this project was ever connected to, or null. */
export async function nextWallet(
  kv: Kv,
  projectId: string,
  wallet: string | null,
): Promise<string | null> {
  // A character that sorts after every project id.
  let after = wallet === null ? null : [...connectionsPrefix(wallet), "~"];
  for (;;) {
    const limit = connectionsPerRead;
    const rows: Row[] = await listAfter(kv, allConnectionsPrefix, { after, limit });
    const found = rows.find(({ key }) => key[2] === projectId);
    if (found) return String(found.key[1]);
    const last = rows.at(-1);
    if (!last || rows.length < limit) return null;
    after = [...last.key];
  }
}

function badPlace() {
  return badRequest("after", "'after' is not valid.");
}
