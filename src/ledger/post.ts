import { createHash } from "node:crypto";
import { ApiError, badRequest, notFound } from "../base/errors.ts";
import { canonicalJson, type JsonObject, toBytes, utf8Length } from "../base/json.ts";
import { type Amount, formatAmount, toAmount, zero } from "../base/money.ts";
import { idempotencyKeyReused } from "../base/request.ts";
import type { Announce } from "../projects/announce.ts";
import type { Kv } from "../store/kv.ts";
import { idempotencyKey, refundedKey } from "../store/keys.ts";
import { type AccountRef, availableIn, placeOf } from "./account.ts";
import type { AccountQueue, Operation, Verdict } from "./account_queue.ts";
import type { Draft } from "./draft.ts";
import { amountOf, type Entry, type EntryKind } from "./entry.ts";
import { type Origin, refusedCharge } from "./events.ts";
import { decodeIdempotency, decodeRefunded, encodeIdempotency, readEntry } from "./store.ts";
import { type BalanceView, fromDecimal, viewBalance } from "./view.ts";

/** A deposit or a charge to make. */
export interface Posting {
  ref: AccountRef;
  amount: Amount;
  metadata: JsonObject | null;
  /** The caller's idempotency key, or null. */
  key: string | null;
  origin: Origin;
  /** Rows to write with the entry. */
  alongside?: (draft: Draft, entry: Entry) => void;
  /** What was paid is booked also where nothing new is taken. */
  paid?: boolean;
}

/** A refund to make; without an amount, of all that is left. */
export interface Refund extends Omit<Posting, "amount"> {
  amount: Amount | null;
  original: Entry;
}

/**
 * What became of it: booked now, booked before under this key, or refused: for want of money, by
 * the day's cap of the person whose wallet it is, or because that person does not allow it.
 */
export type Posted =
  | { kind: "booked" | "replayed"; entry: Entry }
  | { kind: Refusal; balance: BalanceView };

/** Why money was not taken. */
export type Refusal = "insufficient_funds" | "limit_reached" | "authorization_required";

/** The verbs that post one entry each. Throw 422 `idempotency_key_reused`, 403 when archived. */
export interface Post {
  deposit(posting: Posting): Promise<Posted>;
  charge(posting: Posting): Promise<Posted>;
  /** An entry of that account, or null. */
  find(ref: AccountRef, activityId: string): Promise<Entry | null>;
  /** How much of an entry can still be refunded. */
  refundable(ref: AccountRef, entry: Entry): Promise<Amount>;
  /** Throws 400 when it would exceed what is left of the original, 404 for another's entry. */
  refund(refund: Refund): Promise<Posted>;
}

/** Deposit, charge and refund over the account queue. */
export function createPost(kv: Kv, queue: AccountQueue, announce: Announce): Post {
  async function post(operationName: string, posting: Posting | Refund, book: Book) {
    const outcome = await queue.run(posting.ref, keyed(operationName, posting, book));
    if (typeof outcome !== "string") return outcome;
    const entry = await readEntry(kv, placeOf(posting.ref).owner, outcome);
    if (!entry) throw new Error(`no entry ${outcome} for its idempotency key`);
    return { kind: "replayed", entry } as const;
  }
  return {
    async refundable({ projectId }, entry) {
      const { value } = await kv.get(refundedKey(projectId, entry.id));
      return leftOf(entry, value);
    },
    find: (ref, activityId) => readEntry(kv, placeOf(ref).owner, activityId),
    deposit: (posting) =>
      post("deposit", posting, {
        fields: { amount: formatAmount(posting.amount) },
        reads: [],
        apply: (draft, details) => {
          if (!posting.paid) requireActive(draft);
          const entry = { kind: "deposit" as const, ...details };
          const made = draft.credit(posting.amount, entry, posting.origin);
          posting.alongside?.(draft, made);
          return booked(made);
        },
      }),
    async charge(posting) {
      const posted = await post("charge", posting, {
        fields: { amount: formatAmount(posting.amount) },
        reads: [],
        apply: (draft, details) => {
          requireActive(draft);
          const refusal = refusalOf(draft, posting.amount);
          if (refusal) return { value: short(draft, refusal), refused: true };
          const entry = { kind: "charge" as const, ...details };
          const made = draft.debit(posting.amount, entry, posting.origin);
          posting.alongside?.(draft, made);
          return booked(made);
        },
      });
      if (posted.kind === "insufficient_funds") {
        const { ref, amount, origin: { trigger } } = posting;
        const { available } = posted.balance;
        await announce(ref.projectId, refusedCharge(ref, { trigger, amount, available }));
      }
      return posted;
    },
    refund: (refund) => post("refund", refund, refundBook(refund)),
  };
}

type Details = { idempotencyKey: string | null; metadata: JsonObject | null };

interface Book {
  /** What makes the request the same one again, besides user and metadata. */
  fields: Record<string, string | null>;
  reads: Operation<unknown>["reads"];
  apply(draft: Draft, details: Details): Verdict<Posted>;
}

/** Looks under the idempotency key first; gives the id of the entry that is already there. */
function keyed(name: string, posting: Posting | Refund, book: Book): Operation<Posted | string> {
  const { ref, key, metadata } = posting;
  const record = key === null ? null : idempotencyKey(ref.projectId, name, key);
  const fingerprint = fingerprintOf({ user: ref.user, metadata, ...book.fields });
  return {
    reads: record ? [record, ...book.reads] : book.reads,
    // The entry and two events each carry the metadata.
    bytes: 2048 + (metadata ? 3 * utf8Length(JSON.stringify(metadata)) : 0),
    apply(draft) {
      const before = record && draft.row(record);
      if (before) {
        const known = decodeIdempotency(before);
        if (known.fingerprint !== fingerprint) throw idempotencyKeyReused();
        return { value: known.activityId };
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

function fingerprintOf(request: Record<string, unknown>): string {
  return createHash("sha256").update(canonicalJson(request)).digest("base64url");
}

const creditKinds: readonly EntryKind[] = ["charge", "usage", "expired"];

function refundBook({ ref, amount, original, origin, alongside }: Refund): Book {
  const total = refundedKey(ref.projectId, original.id);
  return {
    fields: { activityId: original.id, amount: amount === null ? null : formatAmount(amount) },
    reads: [total],
    apply(draft, details) {
      const projectId = original.projectId ?? ref.projectId;
      if (original.user !== ref.user || projectId !== ref.projectId) throw notFound("activity");
      if (original.kind === "refund") {
        throw badRequest("activityId", "A refund cannot be refunded.", "not_refundable");
      }
      const left = leftOf(original, draft.row(total));
      const refund = amount ?? left;
      if (refund > left || refund === 0n) throw exceeds(left);
      draft.put(total, toBytes(formatAmount(fromDecimal(amountOf(original)) - left + refund)));
      const entry = { kind: "refund" as const, refundedActivityId: original.id, ...details };
      const made = creditKinds.includes(original.kind)
        ? draft.credit(refund, entry, origin)
        : draft.debit(refund, entry, origin);
      alongside?.(draft, made);
      return booked(made);
    },
  };
}

function leftOf(original: Entry, refunded: Uint8Array | null): Amount {
  const whole = fromDecimal(amountOf(original));
  return toAmount(whole - (refunded ? decodeRefunded(refunded) : zero));
}

function exceeds(left: Amount): ApiError {
  return badRequest(
    "amount",
    `Of this activity, ${formatAmount(left)} is left to refund.`,
    "refund_exceeds_original",
  );
}

function booked(entry: Entry): Verdict<Posted> {
  return { value: { kind: "booked", entry } };
}

function refusalOf(draft: Draft, amount: Amount): Refusal | null {
  if (!draft.spending.authorized) return "authorization_required";
  if (amount <= draft.available) return null;
  return amount <= availableIn(draft.account) ? "limit_reached" : "insufficient_funds";
}

function short(draft: Draft, kind: Refusal): Posted {
  const { balance, held } = draft.account;
  const { currency } = draft.snapshot.project;
  return { kind, balance: viewBalance(balance, held, currency) };
}

/** Throws 403 for a project that takes no new money and no new work. */
function requireActive(draft: Draft): void {
  if (draft.snapshot.project.status === "active") return;
  throw new ApiError(403, {
    message: "This project is archived.",
    type: "permission_error",
    code: "project_archived",
  });
}
