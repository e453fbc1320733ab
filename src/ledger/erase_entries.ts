import { entryKinds } from "../base/entry_kinds.ts";
import { z } from "zod";
import { type Json, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, type Erasure, requestIdAfterErasure } from "../store/erase.ts";
import { accountKey, entryKey, idempotencyKey } from "../store/keys.ts";
import { emptyWrite, type Kv, type Row, type Write } from "../store/kv.ts";
import { readPlace, type ScanBudget } from "../store/scan.ts";
import { decodeAccount } from "./account.ts";
import type { Entry, EntryUsage } from "./entry.ts";
import { isOwnKey, keyOperation } from "./key_issuer.ts";
import {
  decodeEntry,
  decodeIdempotency,
  encodeIdempotency,
  forgottenFingerprint,
} from "./store.ts";

/** A part of one account's entries, from one of them back to the first. */
interface EntryChain {
  owner: string;
  /** The entry to start with; null at the end. */
  from: string | null;
  isTheirs(entry: Entry): boolean;
}

const entriesPerWrite = 50;
const activityPlace = z.string().max(64);

/**
 * Erases a user from entries: replaces the user's id by the pseudonym, and removes what the user's
 * app provided, which is metadata and idempotency keys that contain the id. Amounts, kinds, times
 * and the order of entries stay, so the books still add up.
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

/** Walks back along a chain until its end or the budget's; `next` is the entry to continue with. */
export async function eraseEntryChain(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  { chain, erasure, budget }: { chain: EntryChain; erasure: Erasure; budget: ScanBudget },
): Promise<{ erased: number; next: Json | null }> {
  // Each entry is a check, beside the commit's own.
  const readsMax = Math.max(1, Math.min(entriesPerWrite, kv.limits.checks - 4));
  let next = chain.from;
  let erased = 0;
  while (next !== null && !budget.isUsedUp) {
    const first = next;
    const theirs: Entry[] = [];
    const write = emptyWrite();
    for (let read = 0; next !== null && read < readsMax; read++) {
      const row: Row = await kv.get(entryKey(chain.owner, next));
      const entry: Entry | null = row.value && decodeEntry(row.value);
      budget.spend(1);
      if (entry && chain.isTheirs(entry)) {
        theirs.push(entry);
        write.checks.push({ key: row.key, version: row.version });
      }
      next = entry?.prev ?? null;
    }
    if (theirs.length === 0) continue;
    for (const entry of theirs) {
      await renameEntry(kv, write, { owner: chain.owner, entry, erasure });
    }
    // Only archiving rewrites an entry too.
    if ((await committer.commit(write)) === null) next = first;
    else erased += theirs.length;
  }
  return { erased, next };
}

/**
 * Whether a key contains the user's id. A key is visible ASCII, so the id may be percent-encoded.
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
  const { idempotencyKey: key, kind, keyIssuer } = entry;
  const isKeyed = key !== null && entryKinds[kind].hasKeyRecord;
  // A key of this service may prevent a payment from being recorded twice, and names no user.
  const named = !isOwnKey(keyIssuer) && key !== null && keyNamesUser(key, user);
  // By the entry's id: entry numbers restart in each wallet that paid for the user.
  const kept = isKeyed ? (named ? `${pseudonym}-${entry.id}` : key) : null;
  const renamed: Entry = {
    ...entry,
    user: pseudonym,
    metadata: null,
    idempotencyKey: kept,
    usage: entry.usage && withoutCallersId(entry.usage, entry.id),
  };
  write.sets.push({ key: entryKey(owner, entry.id), value: toBytes(renamed) });
  if (!isKeyed || kept === null) return;
  const projectId = entry.projectId ?? owner;
  const operation = keyOperation(kind, keyIssuer);
  const recordKey = idempotencyKey(projectId, operation, key);
  const { value } = await kv.get(recordKey);
  const record = value && decodeIdempotency(value);
  if (record?.activityId !== entry.id) return;
  if (named) write.deletes.push(recordKey);
  write.sets.push({
    key: idempotencyKey(projectId, operation, kept),
    value: encodeIdempotency({ ...record, fingerprint: forgottenFingerprint }),
  });
}

/** Returns a usage without a request id that the caller chose. */
export function withoutCallersId(usage: EntryUsage, activityId: string): EntryUsage {
  const own = activityId.replace(/^act_/, "req_");
  return { ...usage, requestId: requestIdAfterErasure(usage.requestId, own) };
}
