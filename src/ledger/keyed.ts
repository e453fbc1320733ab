import { createHash } from "node:crypto";
import { canonicalJson, type JsonObject } from "../base/json.ts";
import { utf8Length } from "../base/utf8.ts";
import { type Amount, formatAmount } from "../base/money.ts";
import { idempotencyKeyReused } from "../base/request.ts";
import { idempotencyKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { placeOf } from "./account.ts";
import type { Operation, Verdict } from "./waiting.ts";
import type { Draft } from "./draft.ts";
import type { Booked, Posted, Posting, Refund } from "./posting.ts";
import {
  decodeIdempotency,
  encodeIdempotency,
  type IdempotencyRecord,
  readEntry,
} from "./store.ts";

/** A request that may have been made before, when another wallet paid. */
export interface Repeated extends Pick<Posting, "metadata" | "key"> {
  projectId: string;
  user: string;
  amount: Amount | null;
  /** Of a refund: what it is of. */
  activityId?: string;
}

/** What an entry has of its request. */
export type Details = { idempotencyKey: string | null; metadata: JsonObject | null };

/** How one verb is booked. */
export interface Book {
  /** What makes the request the same one again, besides user and metadata. */
  fields: Record<string, string | null>;
  reads: Operation<unknown>["reads"];
  apply(draft: Draft, details: Details): Verdict<Posted>;
}

/** Looks under the idempotency key first; gives the record that is already there. */
export function keyed(
  name: string,
  posting: Posting | Refund,
  book: Book,
): Operation<Posted | IdempotencyRecord> {
  const { ref, key, metadata } = posting;
  const record = key === null ? null : idempotencyKey(ref.projectId, name, key);
  const fingerprint = key === null
    ? ""
    : fingerprintOf({ user: ref.user, metadata, ...book.fields });
  return {
    reads: book.reads,
    claim: record,
    // The entry and two events each carry the metadata.
    bytes: 2048 + (metadata ? 3 * utf8Length(JSON.stringify(metadata)) : 0),
    apply(draft) {
      const before = record && draft.row(record);
      if (before) {
        const known = decodeIdempotency(before);
        requireSame(known, fingerprint);
        return { value: known };
      }
      const verdict = book.apply(draft, { idempotencyKey: key, metadata });
      if (record && verdict.value.kind === "booked") {
        const activityId = verdict.value.entry.id;
        const owner = ref.wallet ? { owner: placeOf(ref).owner } : {};
        draft.put(record, encodeIdempotency({ activityId, fingerprint, ...owner }));
      }
      return verdict;
    },
  };
}

function requireSame(known: IdempotencyRecord, fingerprint: string): void {
  if (known.fingerprint !== fingerprint) throw idempotencyKeyReused();
}

/** The fields of a request that have to be the same when it comes again. */
export function fieldsOf(
  { amount, activityId }: Pick<Repeated, "amount" | "activityId">,
): Book["fields"] {
  const of = activityId === undefined ? {} : { activityId };
  return { ...of, amount: amount === null ? null : formatAmount(amount) };
}

function fingerprintOf(request: Record<string, unknown>): string {
  return createHash("sha256").update(canonicalJson(request)).digest("base64url");
}

/** The entry that a key stands for. */
export async function replay(
  kv: Kv,
  { owner, activityId }: IdempotencyRecord,
  projectId: string,
): Promise<Booked> {
  const entry = await readEntry(kv, owner ?? projectId, activityId);
  if (!entry) throw new Error(`no entry ${activityId} for its idempotency key`);
  return { kind: "replayed", entry };
}

/** What the same request was answered by before, also where nobody pays any more; or null. */
export async function findEarlier(
  kv: Kv,
  verb: string,
  { projectId, user, key, metadata, ...fields }: Repeated,
): Promise<Booked | null> {
  if (key === null) return null;
  const { value } = await kv.get(idempotencyKey(projectId, verb, key));
  if (!value) return null;
  const record = decodeIdempotency(value);
  requireSame(record, fingerprintOf({ user, metadata, ...fieldsOf(fields) }));
  return await replay(kv, record, projectId);
}
