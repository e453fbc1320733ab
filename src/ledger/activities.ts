import { badCursor } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import { csvLine } from "../base/csv.ts";
import type { Project } from "../projects/schema.ts";
import type { Kv } from "../store/kv.ts";
import { type AccountRef, placeOf } from "./account.ts";
import { findAccounts } from "./authorization.ts";
import { amountOf, type Entry } from "./entry.ts";
import { readAccount, readEntry } from "./store.ts";

/** One page of a user's entries, newest first, and where the next page starts. */
export interface ActivityPage {
  entries: Entry[];
  nextCursor: string | null;
}

/** Of a wallet that others use too, a page may be shorter: it goes on at the cursor. */
const readMax = 500;

/**
 * Walks an account's entries backwards from its last one, or from `cursor`. Entries never change
 * and new ones come before the first page, so pages have no gaps and no repeats.
 * Throws 400 for a cursor that is not this user's.
 */
export async function listActivities(
  kv: Kv,
  ref: AccountRef,
  { limit, cursor, whole = false }: {
    limit: number;
    cursor: string | undefined;
    /** Of a wallet: also what was for other projects, which is for its owner's eyes alone. */
    whole?: boolean;
  },
): Promise<ActivityPage> {
  if (cursor !== undefined && !isId("act", cursor)) throw badCursor();
  const { owner } = placeOf(ref);
  const entries: Entry[] = [];
  let next = cursor ?? (await readAccount(kv, ref)).last;
  for (let read = 0; next !== null && entries.length < limit && read < readMax; read++) {
    const entry: Entry | null = await readEntry(kv, owner, next);
    const mine = ref.wallet ? entry?.projectId !== undefined : entry?.user === ref.user;
    if (!entry || !mine) throw badCursor();
    // What other projects took of a wallet is no business of this one.
    if (whole || !ref.wallet || isOwn(entry, ref)) entries.push(entry);
    next = entry.prev;
  }
  return { entries, nextCursor: next };
}

/** A user's activity, in whichever account that ever paid for them; null when it is in none. */
export async function findActivity(
  kv: Kv,
  project: Project,
  { user, activityId }: { user: string; activityId: string },
): Promise<{ ref: AccountRef; entry: Entry } | null> {
  for (const ref of await findAccounts(kv, project, user)) {
    const entry = await readEntry(kv, placeOf(ref).owner, activityId);
    if (entry) return { ref, entry };
  }
  return null;
}

function isOwn({ projectId, user }: Entry, ref: AccountRef): boolean {
  return projectId === ref.projectId && user === ref.user;
}

const columns = [
  "id",
  "createdAt",
  "kind",
  "user",
  "amount",
  "delta",
  "currency",
  "balanceAfter",
  "shortfall",
  "idempotencyKey",
  "model",
  "metadata",
] as const;

/** Entries as CSV (RFC 4180), with a header line. */
export function toCsv(entries: readonly Entry[], currency: string): string {
  const rows = entries.map((entry) => {
    const { metadata, usage, createdAt, ...rest } = entry;
    const row: Record<typeof columns[number], string | null> = {
      ...rest,
      currency,
      amount: amountOf(entry),
      createdAt: new Date(createdAt).toISOString(),
      model: usage?.model ?? null,
      metadata: metadata && JSON.stringify(metadata),
    };
    return csvLine(columns.map((column) => row[column]));
  });
  return [csvLine(columns), ...rows].join("");
}
