import { entryKinds } from "../base/entry_kinds.ts";
import { z } from "zod";
import { type Json, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { Eraser, Erasure } from "../store/erase.ts";
import { accountKey, entryKey, idempotencyKey } from "../store/keys.ts";
import { emptyWrite, type Kv, type Write } from "../store/kv.ts";
import { readPlace, type ScanBudget } from "../store/scan.ts";
import { decodeAccount } from "./account.ts";
import type { Entry } from "./entry.ts";
import { decodeIdempotency, encodeIdempotency, readEntry } from "./store.ts";

/** Some entries of one account, from one of them back to the first. */
export interface EntryChain {
  owner: string;
  /** The entry to begin with; null at the end. */
  from: string | null;
  isTheirs(entry: Entry): boolean;
}

const entriesPerWrite = 50;
const activityPlace = z.string().max(64);

/**
 * Puts the pseudonym into a user's entries, and takes out of them what the user's app said:
 * metadata, and idempotency keys that contain the user's id. Amounts, kinds, times and the order of
 * entries stay, so the books go on to add up.
 */
export function createEntryEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return {
    name: "entries",
    async page(erasure, place, budget) {
      const { projectId: owner, user, pseudonym } = erasure;
      const from = place === null
        ? decodeAccount((await kv.get(accountKey(owner, pseudonym))).value).last
        : readPlace(activityPlace, place);
      const chain: EntryChain = { owner, from, isTheirs: (entry) => entry.user === user };
      return await eraseEntryChain({ kv, committer }, { chain, erasure, budget });
    },
  };
}

/**
 * Goes back along a chain until its end or that of the budget; `next` is the entry to go on with.
 */
export async function eraseEntryChain(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  { chain, erasure, budget }: { chain: EntryChain; erasure: Erasure; budget: ScanBudget },
): Promise<{ erased: number; next: Json | null }> {
  let next = chain.from;
  let erased = 0;
  while (next !== null && !budget.isUsedUp) {
    const theirs: Entry[] = [];
    for (let read = 0; next !== null && read < entriesPerWrite; read++) {
      const entry: Entry | null = await readEntry(kv, chain.owner, next);
      budget.spend(1);
      if (entry && chain.isTheirs(entry)) theirs.push(entry);
      next = entry?.prev ?? null;
    }
    if (theirs.length === 0) continue;
    const write = emptyWrite();
    for (const entry of theirs) {
      await renameEntry(kv, write, { owner: chain.owner, entry, erasure });
    }
    // Nobody else writes an entry again, nor the record of its key.
    await committer.commit(write);
    erased += theirs.length;
  }
  return { erased, next };
}

/**
 * Whether a key names a user: it is visible ASCII, which many a name fits into only as in a URL.
 */
function keyNamesUser(key: string, user: string): boolean {
  const text = key.toLowerCase();
  return [user, encodeURIComponent(user)].some((name) => text.includes(name.toLowerCase()));
}

async function renameEntry(
  kv: Kv,
  write: Write,
  { owner, entry, erasure }: { owner: string; entry: Entry; erasure: Erasure },
): Promise<void> {
  const { user, pseudonym } = erasure;
  const { idempotencyKey: key, kind } = entry;
  const isKeyed = key !== null && entryKinds[kind].hasKeyRecord;
  // It may be what guards money against being booked twice, so it stays where it names nobody.
  const isOurs = key?.startsWith("stripe:") ?? false;
  const named = !isOurs && key !== null && keyNamesUser(key, user);
  // By its id: numbers begin anew in each wallet that paid for the user.
  const kept = isKeyed ? (named ? `${pseudonym}-${entry.id}` : key) : null;
  const renamed: Entry = { ...entry, user: pseudonym, metadata: null, idempotencyKey: kept };
  write.sets.push({ key: entryKey(owner, entry.id), value: toBytes(renamed) });
  if (!isKeyed || kept === null) return;
  const projectId = entry.projectId ?? owner;
  const recordKey = idempotencyKey(projectId, kind, key);
  const { value } = await kv.get(recordKey);
  const record = value && decodeIdempotency(value);
  if (record?.activityId !== entry.id) return;
  if (named) write.deletes.push(recordKey);
  write.sets.push({
    key: idempotencyKey(projectId, kind, kept),
    // The request that it was made by told the user's id, if only by its hash.
    value: encodeIdempotency({ ...record, fingerprint: "forgotten" }),
  });
}
