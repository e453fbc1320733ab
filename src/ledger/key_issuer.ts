import { canonicalJson, type JsonObject } from "../base/json.ts";
import { idempotencyKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import { type Entry, type KeyIssuer, keyIssuers } from "./entry.ts";
import { decodeIdempotency, forgottenFingerprint, readEntry } from "./store.ts";

/**
 * Returns the operation under which an idempotency key is stored. The API has no operation of these
 * names, so no caller can use up a key that this service is going to choose.
 */
export function keyOperation(verb: string, issuer: Entry["keyIssuer"]): string {
  return isOwnKey(issuer) ? `${issuer} ${verb}` : verb;
}

/** Whether this service chose the key of an entry. */
export function isOwnKey(issuer: Entry["keyIssuer"]): issuer is KeyIssuer {
  return issuer !== undefined && issuer !== "caller";
}

/**
 * Returns what an entry stores about the origin of its key. Older versions stored their own keys
 * where callers' keys are: a caller's key that looks like one of those is marked.
 */
export function issuerOfKey(key: string | null, issuer?: KeyIssuer): Entry["keyIssuer"] {
  if (key === null || issuer !== undefined) return issuer;
  return keyIssuers.some((name) => key.startsWith(`${name}:`)) ? "caller" : undefined;
}

/** Finds what an older version recorded for the same request, where callers' keys are; or null. */
export async function findFormerEntry(
  kv: Kv,
  verb: string,
  { ref: { projectId }, key, metadata }: {
    ref: AccountRef;
    key: string | null;
    metadata: JsonObject | null;
  },
): Promise<Entry | null> {
  const { value } = key === null ? {} : await kv.get(idempotencyKey(projectId, verb, key));
  if (!value) return null;
  const { owner = projectId, activityId, fingerprint } = decodeIdempotency(value);
  const entry = await readEntry(kv, owner, activityId);
  if (!entry || entry.keyIssuer !== undefined) return null;
  // An erased user's entry has lost its metadata.
  const isSame = fingerprint === forgottenFingerprint ||
    canonicalJson(entry.metadata) === canonicalJson(metadata);
  return isSame ? entry : null;
}
