import { fromBytes, toBytes } from "../base/json.ts";
import type { AuditRow } from "../projects/audit.ts";
import {
  consoleFormKey,
  consoleFormsPrefix,
  consoleSessionEndKey,
  consoleSessionEndsPrefix,
  consoleSessionKey,
} from "../store/keys.ts";
import type { Key, Kv, Write } from "../store/kv.ts";
import type { Sealed } from "../store/secrets.ts";

/** Who signed in, and how to check that they still may: never a key itself. */
export type SessionHolder =
  | { kind: "key"; keyHash: string; projectId: string; actor: AuditRow["actor"] }
  /** The fixed key of development. */
  | { kind: "dev"; projectId: string; actor: AuditRow["actor"] }
  /** HMAC-SHA-256 of `ADMIN_KEY`, keyed with the cookie. */
  | { kind: "operator"; digest: string };

/** A session as it is stored. Times in milliseconds since 1970. */
export interface StoredSession {
  holder: SessionHolder;
  endsAt: number;
  /** When it was used last. */
  usedAt: number;
  /** When its key was entered last. */
  confirmedAt: number;
}

/** Reads the session with that hash and the version of its row, or null. */
export async function readSession(
  kv: Kv,
  hash: string,
): Promise<{ session: StoredSession; version: string | null } | null> {
  const { value, version } = await kv.get(consoleSessionKey(hash));
  return value && { session: fromBytes<StoredSession>(value), version };
}

/** Adds new times of a session to the write, unless it has been changed or ended meanwhile. */
export function touchSession(
  write: Write,
  { hash, version, session }: { hash: string; version: string | null; session: StoredSession },
): void {
  const key = consoleSessionKey(hash);
  write.checks.push({ key, version });
  write.sets.push({ key, value: toBytes(session) });
}

/** Adds a session to the write. */
export function putSession(write: Write, hash: string, session: StoredSession): void {
  write.sets.push(
    { key: consoleSessionKey(hash), value: toBytes(session) },
    { key: consoleSessionEndKey(session.endsAt, hash), value: new Uint8Array() },
  );
}

/**
 * Adds the end of a session to the write; its other rows are removed when it would have expired.
 */
export function removeSession(write: Write, hash: string): void {
  write.deletes.push(consoleSessionKey(hash));
}

/** Adds the removal of an expired session's remaining rows to the write. */
export function removeOtherSessions(
  write: Write,
  { hash, endsAt, forms }: { hash: string; endsAt: number; forms: readonly Key[] },
): void {
  removeSession(write, hash);
  write.deletes.push(consoleSessionEndKey(endsAt, hash), ...forms);
}

/** Lists sessions that have expired by `now`, oldest first. */
export async function listEnded(
  kv: Kv,
  { now, limit }: { now: number; limit: number },
): Promise<{ hash: string; endsAt: number }[]> {
  const end: Key = [...consoleSessionEndsPrefix, now + 1];
  const rows = await kv.list({ prefix: consoleSessionEndsPrefix, end, limit });
  return rows.map(({ key }) => ({ endsAt: Number(key[1]), hash: String(key[2]) }));
}

/** Lists some of the forms that were sent in a session. */
export async function listForms(kv: Kv, hash: string, limit: number): Promise<Key[]> {
  return (await kv.list({ prefix: consoleFormsPrefix(hash), limit })).map(({ key }) => key);
}

/** Adds to the write that a form was sent, which succeeds only once, and what it created. */
export function putSubmittedForm(
  write: Write,
  { hash, formId, made = null }: { hash: string; formId: string; made?: SealedSubmission | null },
): void {
  const key = consoleFormKey(hash, formId);
  write.checks.push({ key, version: null });
  write.sets.push({ key, value: made ? toBytes(made) : new Uint8Array() });
}

/** What a form created: encrypted, and when, in ms since 1970. */
interface SealedSubmission extends Sealed {
  at: number;
}

/**
 * Returns whether a form was sent, and what it created if that is stored; null where it was not.
 */
export async function readSubmittedForm(
  kv: Kv,
  { hash, formId }: { hash: string; formId: string },
): Promise<{ made: SealedSubmission | null } | null> {
  const { value } = await kv.get(consoleFormKey(hash, formId));
  return value && { made: value.length > 0 ? fromBytes<SealedSubmission>(value) : null };
}
