import { createHash } from "node:crypto";
import { canonicalJson, toBytes } from "../../base/json.ts";
import { utf8Length } from "../../base/utf8.ts";
import { chatReplayBytesMax, chatReplayLifetimeMs } from "../../base/limits.ts";
import { idempotencyKeyReused } from "../../base/request.ts";
import type { HeaderList } from "../../base/response.ts";
import type { Deps } from "../../deps.ts";
import type { AccountRef, WalletRef } from "../../ledger/account.ts";
import type { AccountTx } from "../../ledger/account_tx.ts";
import type { HoldRequest, Quote } from "../../ledger/hold.ts";
import { isHoldActive } from "../../ledger/balance.ts";
import { type Eraser, eraseRows } from "../../store/erase.ts";
import { type ExpiringKind, keysWithExpiry, replacingExpiry } from "../../store/expiry.ts";
import { keptHead, type KeptTexts } from "../../store/kept_texts.ts";
import { allChatReplaysPrefix, chatReplayKey, chatReplaysPrefix } from "../../store/keys.ts";
import type { Key } from "../../store/kv.ts";
import type { ModelRequest } from "../model_request.ts";
import { ApiError } from "../../base/errors.ts";
import type { Caller } from "../../projects/auth.ts";
import { keyText, sameBytes } from "../../store/batch.ts";
import { callerDisconnected } from "../caller_left.ts";

/** A call's idempotency key, and the fingerprint of its request. */
export interface IdempotencyMark {
  idempotencyKey: string;
  key: Key;
  fingerprint: string;
  /** When the stored response expires, in milliseconds since 1970. */
  expiresAt: number;
}

/** A response as it was sent the first time. */
export interface StoredResponse {
  /** Absent for 200. */
  status?: number;
  headers: HeaderList;
  body: string;
}

/**
 * The head of a stored row, before the body's text. `running` is valid as long as the hold that it
 * names.
 */
type Head =
  | {
    state: "running";
    fingerprint: string;
    expiresAt: number;
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
    user: string;
  };

/** Idempotency keys of chats, and the responses under them. */
export const chatReplayRows: ExpiringKind = {
  prefix: allChatReplaysPrefix,
  endsAt: (value) => keptHead<Head>(value).expiresAt,
};

/** The mark of a request under a key. */
export function idempotencyMark(
  { projectId, user }: AccountRef,
  idempotencyKey: string,
  { input, now }: { input: ModelRequest; now: number },
): IdempotencyMark {
  return {
    idempotencyKey,
    key: chatReplayKey(projectId, idempotencyKey, hashOf(user)),
    fingerprint: hashOf(canonicalJson([user, input.body, ...fileOf(input)])),
    expiresAt: now + chatReplayLifetimeMs,
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

type Services = { deps: Deps; texts: KeptTexts; waiters: Waiters };

/**
 * What is stored under a user's key now. Throws 422 where it was used with another body, or where
 * the response under it can no longer be decrypted.
 */
async function findPrevious(
  { deps, texts }: Services,
  projectId: string,
  mark: IdempotencyMark,
): Promise<PreviousCall | "running"> {
  const { key, value } = await deps.kv.get(mark.key);
  const nothing = { stored: null, remains: value };
  if (!value) return nothing;
  const head = keptHead<Head>(value);
  if (head.state === "done") {
    if (head.expiresAt <= deps.clock.now()) return nothing;
    if (head.fingerprint !== mark.fingerprint) throw idempotencyKeyReused();
    const body = texts.textOf(key, value);
    if (body === null) throw responseUnreadable();
    return { stored: { status: head.status ?? 200, headers: head.headers, body } };
  }
  const holder = { projectId, user: head.user, wallet: head.wallet };
  if (!(await isHoldActive(deps, holder, head.holdId))) return nothing;
  if (head.fingerprint !== mark.fingerprint) throw idempotencyKeyReused();
  return "running";
}

/**
 * 422: the stored response cannot be read. Its call was charged, and to repeat it would charge
 * twice.
 */
function responseUnreadable(): ApiError {
  return new ApiError(422, {
    message: "The response under this Idempotency-Key was charged and stored, and can no longer " +
      "be read: the SECRETS_KEY that encrypted it is gone. Use another key for a new response.",
    code: "stored_response_unreadable",
    param: "Idempotency-Key",
  });
}

/** The row that marks the call as running; it may replace only the `remains` of an ended call. */
export function runningRow<Q extends Quote>(
  { texts }: Pick<Services, "texts">,
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
  const { key } = mark;
  const row = { key, value: texts.encode(key, head, "") };
  // The row expires also when the process dies and nobody repeats the request.
  const { sets, deletes } = replacingExpiry(chatReplayRows, row, remains);
  return {
    key,
    sets,
    deletes,
    blocks: (present) => !remains || !sameBytes(present, remains),
  };
}

/** Stores the response with its charge, or frees the key when it is too large. */
export function storeResponse(
  { texts }: Pick<Services, "texts">,
  tx: AccountTx,
  { mark, ref, response }: { mark: IdempotencyMark; ref: AccountRef; response: StoredResponse },
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
  tx.put(mark.key, texts.encode(mark.key, head, response.body));
}

/** Frees the key for another request. */
export function removeIdempotencyMark(
  tx: AccountTx,
  { key, expiresAt }: Pick<IdempotencyMark, "key" | "expiresAt">,
): void {
  const value = toBytes({ expiresAt });
  for (const each of keysWithExpiry(chatReplayRows, { key, value })) tx.remove(each);
}

/** Whether a response is small enough to be stored. */
export function fitsIdempotencyStore(body: string): boolean {
  return body.length * 3 <= chatReplayBytesMax || utf8Length(body) <= chatReplayBytesMax;
}

/** Erases a user's stored responses. */
export function createResponseEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "chatAnswers",
    kv,
    committer,
    prefix: ({ projectId }) => chatReplaysPrefix(projectId),
    rewrite({ key, value }, { user }) {
      if (!value || keptHead<Head>(value).user !== user) return null;
      return { sets: [], deletes: keysWithExpiry(chatReplayRows, { key, value }) };
    },
  });
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
  services: Services,
  { idempotency: mark, caller, request }: {
    idempotency: IdempotencyMark | null;
    caller: Caller;
    request: Request;
  },
): Promise<PreviousCall> | null {
  return mark && waitFor(services, { mark, request, projectId: caller.snapshot.project.id });
}

async function waitFor(
  services: Services,
  { mark, request, projectId }: { mark: IdempotencyMark; request: Request; projectId: string },
): Promise<PreviousCall> {
  const { deps, waiters } = services;
  const first = await findPrevious(services, projectId, mark);
  if (first !== "running") return first;
  const release = acquireWaiter(waiters, keyText(mark.key));
  try {
    // Ends with the hold, which a running call cannot renew forever.
    for (let pollMs = pollMinMs;; pollMs = Math.min(pollMs * pollGrowth, pollMaxMs)) {
      await deps.clock.sleep(pollMs, request.signal);
      if (request.signal.aborted) throw callerDisconnected;
      const found = await findPrevious(services, projectId, mark);
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
