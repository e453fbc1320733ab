import type { EntryKind } from "../base/entry_kinds.ts";
import { type StoredTokens, storedTotal } from "../base/token_classes.ts";
import type { JsonObject } from "../base/json.ts";
import { type Amount, formatAmount } from "../base/money.ts";

/** What an answer used and what it was charged by. Token classes never overlap. */
export interface EntryUsage extends StoredTokens {
  model: string;
  requestId: string;
  /** Whether the upstream counted, or we did. */
  source: "provider" | "estimated";
  /** The price used: decimal strings, per million tokens and per request. */
  price: Record<string, string>;
}

/** One immutable movement of one account. Amounts are decimal strings in currency units. */
export interface Entry {
  id: string;
  /** Counts an account's entries from 1 without gaps. */
  seq: number;
  /** The account's entry before this one. */
  prev: string | null;
  kind: EntryKind;
  user: string;
  /** In a wallet: the project that it was for. */
  projectId?: string;
  /** With the sign with which it changed the balance. */
  delta: string;
  balanceAfter: string;
  heldAfter: string;
  /** What was due and could not be collected; below zero where such is due no more. */
  shortfall: string;
  /** In milliseconds since 1970. */
  createdAt: number;
  idempotencyKey: string | null;
  metadata: JsonObject | null;
  usage: EntryUsage | null;
  /** Of a refund: the entry that it refunds; of what is given back: the one that was refunded. */
  refundedActivityId: string | null;
}

/** What the maker of an entry decides; the account gives the rest. */
export type NewEntry =
  & Pick<Entry, "kind">
  & Partial<Pick<Entry, "id" | "idempotencyKey" | "metadata" | "usage" | "refundedActivityId">>;

/** An entry as it is kept, of an account as it is after it. */
export function createEntry(
  { id, kind, idempotencyKey, metadata, usage, refundedActivityId }: NewEntry & { id: string },
  account: { seq: number; last: string | null; balance: Amount; held: Amount },
  moved: { user: string; delta: Amount; shortfall: Amount; createdAt: number },
): Entry {
  return {
    id,
    seq: account.seq,
    prev: account.last,
    kind,
    user: moved.user,
    delta: formatAmount(moved.delta),
    balanceAfter: formatAmount(account.balance),
    heldAfter: formatAmount(account.held),
    shortfall: formatAmount(moved.shortfall),
    createdAt: moved.createdAt,
    idempotencyKey: idempotencyKey ?? null,
    metadata: metadata ?? null,
    usage: usage ?? null,
    refundedActivityId: refundedActivityId ?? null,
  };
}

/** All tokens of an answer. */
export function totalTokens(usage: EntryUsage): number {
  return storedTotal(usage);
}

/** How much an entry moved, never negative. */
export function absoluteAmount(entry: Pick<Entry, "delta">): string {
  return entry.delta.replace("-", "");
}

/** The activity of an answer has the id of its request, so it is known before it is written. */
export function activityIdOfRequest(requestId: string): string {
  return requestId.replace(/^req_/, "act_");
}
