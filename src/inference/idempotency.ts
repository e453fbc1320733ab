import { createHash } from "node:crypto";
import { canonicalJson } from "../base/json.ts";
import { decodeUtf8, encodeUtf8, utf8Length } from "../base/utf8.ts";
import { chatReplayBytesMax, chatReplayLifetimeMs } from "../base/limits.ts";
import { idempotencyKeyReused } from "../base/request.ts";
import type { HeaderList } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef, WalletRef } from "../ledger/account.ts";
import type { AccountTx } from "../ledger/account_tx.ts";
import type { HoldRequest, Quote } from "../ledger/hold.ts";
import { isHoldActive } from "../ledger/balance.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import {
  chatReplayDueKey,
  chatReplayDuePrefix,
  chatReplayKey,
  chatReplaysPrefix,
  sharedChatReplayKey,
} from "../store/keys.ts";
import { emptyWrite, type Key } from "../store/kv.ts";
import type { ModelRequest } from "./format.ts";
import { ApiError } from "../base/errors.ts";
import type { Caller } from "../projects/auth.ts";
import { keyText } from "../store/batch.ts";
import { callerDisconnected } from "./disconnect.ts";

/** A call's idempotency key, and the fingerprint of its request. */
export interface IdempotencyMark {
  idempotencyKey: string;
  key: Key;
  /** Where versions that shared a key between a project's users stored it. */
  sharedKey: Key;
  user: string;
  fingerprint: string;
  /** When the stored response expires, in milliseconds since 1970, and the row that says so. */
  expiresAt: number;
  dueKey: Key;
}

/** A response as it was sent the first time. */
export interface StoredResponse {
  /** Absent for 200. */
  status?: number;
  headers: HeaderList;
  body: string;
}

/** What is stored before the body's text. `running` is valid as long as the hold that it names. */
type Head =
  | {
    state: "running";
    fingerprint: string;
    /** Absent in rows of older versions. */
    expiresAt?: number;
    holdId: string;
    user: string;
    /** The wallet that holds the money, if not the user's own account. */
    wallet?: WalletRef;
  }
  | {
    state: "done";
    fingerprint: string;
    expiresAt: number;
    headers: HeaderList;
    /** Absent for 200. */
    status?: number;
    /** Absent in rows of older versions. */
    user?: string;
  };

/** The mark of a request under a key. */
export function idempotencyMark(
  { projectId, user }: AccountRef,
  idempotencyKey: string,
  { input, now }: { input: ModelRequest; now: number },
): IdempotencyMark {
  const expiresAt = now + chatReplayLifetimeMs;
  const key = chatReplayKey(projectId, idempotencyKey, hashOf(user));
  return {
    idempotencyKey,
    key,
    sharedKey: sharedChatReplayKey(projectId, idempotencyKey),
    user,
    fingerprint: hashOf(canonicalJson([user, input.body, ...fileOf(input)])),
    expiresAt,
    dueKey: chatReplayDueKey(expiresAt, key),
  };
}

function fileOf({ file }: ModelRequest): string[] {
  return file ? [file.name, hashOf(file.bytes)] : [];
}

function hashOf(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** What is stored under a key: a response to replay, or the row that a new call may replace. */
export type PreviousCall = { stored: StoredResponse } | {
  stored: null;
  remains: Uint8Array | null;
};

/** What is stored under a user's key now. Throws 422 where it was used with another body. */
async function findPrevious(
  deps: Deps,
  projectId: string,
  mark: IdempotencyMark,
): Promise<PreviousCall | "running"> {
  const [own, shared] = await Promise.all([deps.kv.get(mark.key), deps.kv.get(mark.sharedKey)]);
  const previous = await readPrevious(deps, { projectId, mark, value: own.value });
  if (previous !== "running" && previous.stored === null && isOfUser(shared.value, mark)) {
    const older = await readPrevious(deps, { projectId, mark, value: shared.value });
    if (older === "running" || older.stored) return older;
  }
  return previous;
}

/** Whether a row that all users of the project shared is about this user. */
function isOfUser(value: Uint8Array | null, { user, fingerprint }: IdempotencyMark): boolean {
  if (!value) return false;
  const { head } = decode(value);
  return head.user === user || head.fingerprint === fingerprint;
}

async function readPrevious(
  { kv, clock }: Deps,
  { projectId, mark, value }: {
    projectId: string;
    mark: IdempotencyMark;
    value: Uint8Array | null;
  },
): Promise<PreviousCall | "running"> {
  const nothing = { stored: null, remains: value };
  if (!value) return nothing;
  const { head, body } = decode(value);
  if (head.state === "done") {
    if (head.expiresAt <= clock.now()) return nothing;
    if (head.fingerprint !== mark.fingerprint) throw idempotencyKeyReused();
    return { stored: { status: head.status ?? 200, headers: head.headers, body } };
  }
  const holder = { projectId, user: head.user, wallet: head.wallet };
  if (!(await isHoldActive(kv, holder, { id: head.holdId, now: clock.now() }))) return nothing;
  if (head.fingerprint !== mark.fingerprint) throw idempotencyKeyReused();
  return "running";
}

/** The row that marks the call as running; it may replace only the `remains` of an ended call. */
export function runningRow<Q extends Quote>(
  mark: IdempotencyMark,
  { ref: { user, wallet }, holdId, remains }: {
    ref: AccountRef;
    holdId: string;
    remains: Uint8Array | null;
  },
): NonNullable<HoldRequest<Q>["mark"]> {
  const { fingerprint, expiresAt } = mark;
  const head: Head = {
    state: "running",
    fingerprint,
    expiresAt,
    holdId,
    user,
    ...(wallet && { wallet }),
  };
  const replaceable = remains && decodeUtf8(remains);
  return {
    key: mark.key,
    rows: [
      { key: mark.key, value: encode(head, "") },
      // Expires the row also when the process dies and nobody repeats the request.
      { key: mark.dueKey, value: encodeUtf8("{}") },
    ],
    blocks: (present) => decodeUtf8(present) !== replaceable,
  };
}

/** Stores the response with its charge, or frees the key when it is too large. */
export function storeResponse(
  tx: AccountTx,
  mark: IdempotencyMark,
  { ref, response }: { ref: AccountRef; response: StoredResponse },
): void {
  if (!fitsIdempotencyStore(response.body)) return removeIdempotencyMark(tx, mark);
  const { fingerprint, expiresAt } = mark;
  const { status, headers } = response;
  const head: Head = {
    state: "done",
    fingerprint,
    expiresAt,
    headers,
    user: ref.user,
    ...(status && { status }),
  };
  tx.put(mark.key, encode(head, response.body));
}

/** Frees the key for another request. */
export function removeIdempotencyMark(tx: AccountTx, { key, dueKey }: IdempotencyMark): void {
  tx.remove(key);
  tx.remove(dueKey);
}

/** Whether a response is small enough to be stored. */
export function fitsIdempotencyStore(body: string): boolean {
  return body.length * 3 <= chatReplayBytesMax || utf8Length(body) <= chatReplayBytesMax;
}

const dueRowsPerSweep = 200;

/** Removes expired responses, oldest first; a bounded number at each call. */
export async function sweepStoredResponses({ kv, committer, clock }: Deps): Promise<void> {
  const now = clock.now();
  for (const { key } of await kv.list({ prefix: chatReplayDuePrefix, limit: dueRowsPerSweep })) {
    const [, dueMs, projectId, idempotencyKey, userHash] = key;
    if (Number(dueMs) > now) return;
    const place = [String(projectId), String(idempotencyKey)] as const;
    const row = await kv.get(
      userHash === undefined
        ? sharedChatReplayKey(...place)
        : chatReplayKey(...place, String(userHash)),
    );
    const write = emptyWrite();
    write.deletes.push(key);
    if (row.value && (decode(row.value).head.expiresAt ?? 0) <= now) {
      write.checks.push({ key: row.key, version: row.version });
      write.deletes.push(row.key);
    }
    await committer.commit(write);
  }
}

/** Erases a user's stored responses. */
export function createResponseEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "chatAnswers",
    kv,
    committer,
    prefix: ({ projectId }) => chatReplaysPrefix(projectId),
    rewrite({ key, value }, { user }) {
      const head = value && decode(value).head;
      if (head?.user !== user) return null;
      const { expiresAt } = head;
      const due = expiresAt === undefined ? [] : [chatReplayDueKey(expiresAt, key)];
      return { sets: [], deletes: [key, ...due] };
    },
  });
}

function encode(head: Head, body: string): Uint8Array {
  return encodeUtf8(`${JSON.stringify(head)}\n${body}`);
}

function decode(bytes: Uint8Array): { head: Head; body: string } {
  const text = decodeUtf8(bytes) ?? "";
  const end = text.indexOf("\n");
  return { head: JSON.parse(text.slice(0, end)), body: text.slice(end + 1) };
}

/** Requests of this process that wait for a response: how many, by its key. */
type Waiters = Map<string, number>;

/** Polling intervals for a running call: short at first, since most calls are short. */
const pollMinMs = 50;
const pollMaxMs = 1_000;
const pollGrowth = 1.25;
/** Waiters for one key. Each is a running request of the service that no other limit counts. */
const waitersMax = 8;

/**
 * What is stored under a request's idempotency key, if it has one. While the same request is
 * running, waits for its response. Throws 422 when the key was used with another body, 429 when too
 * many requests wait, 499 when the client disconnects.
 */
export function awaitPrevious(
  services: { deps: Deps; waiters: Waiters },
  { idempotency: mark, caller, request }: {
    idempotency: IdempotencyMark | null;
    caller: Caller;
    request: Request;
  },
): Promise<PreviousCall> | null {
  return mark && waitFor(services, { mark, request, projectId: caller.snapshot.project.id });
}

async function waitFor(
  { deps, waiters }: { deps: Deps; waiters: Waiters },
  { mark, request, projectId }: { mark: IdempotencyMark; request: Request; projectId: string },
): Promise<PreviousCall> {
  const first = await findPrevious(deps, projectId, mark);
  if (first !== "running") return first;
  const release = acquireWaiter(waiters, keyText(mark.key));
  try {
    // Ends with the hold, which a running call cannot renew forever.
    for (let pollMs = pollMinMs;; pollMs = Math.min(pollMs * pollGrowth, pollMaxMs)) {
      await deps.clock.sleep(pollMs, request.signal);
      if (request.signal.aborted) throw callerDisconnected;
      const found = await findPrevious(deps, projectId, mark);
      if (found !== "running") return found;
    }
  } finally {
    release();
  }
}

/** Counts one waiter until the returned function is called. Throws 429. */
function acquireWaiter(waiters: Waiters, key: string): () => void {
  const before = waiters.get(key) ?? 0;
  if (before >= waitersMax) {
    throw new ApiError(429, {
      message: `${waitersMax} requests already wait for the response under this Idempotency-Key.`,
      type: "rate_limit_error",
      code: "concurrency_limit",
      headers: { "retry-after": "1" },
    });
  }
  waiters.set(key, before + 1);
  return () => {
    const now = waiters.get(key) ?? 1;
    if (now > 1) waiters.set(key, now - 1);
    else waiters.delete(key);
  };
}
