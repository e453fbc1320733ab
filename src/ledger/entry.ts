import type { FormatName } from "../base/endpoints.ts";
import type { EntryKind } from "../base/entry_kinds.ts";
import type { EntryReason } from "../base/entry_reasons.ts";
import { type StoredTokens, storedTotal } from "../base/token_classes.ts";
import type { JsonObject } from "../base/json.ts";
import { type Amount, formatAmount } from "../base/money.ts";

/** The usage of a response, and the prices it was charged by. Token classes never overlap. */
export interface EntryUsage extends StoredTokens {
  model: string;
  requestId: string;
  /** Who counted the tokens: the upstream, or Farebox. */
  source: "provider" | "estimated";
  /** The prices used: decimal strings, per million tokens, per request and per unit. */
  price: Readonly<Record<string, string>>;
  /** The endpoint that was called; absent for chat completions. */
  endpoint?: FormatName;
  /** The model that answered, where it is another than the one requested. */
  servedModel?: string;
  /** The name of the upstream that answered, where a route leads to it. */
  upstream?: string;
  /** How many attempts the response took, where it took more than one. */
  attempts?: number;
  /** The service tier that served the response, or else the one that was requested. */
  serviceTier?: string;
  /** Calls of tools that ran at the provider, by the tool's name. */
  toolCalls?: Readonly<Record<string, number>>;
  /** Images that were made, by the name of the price that applied: `hd 1024x1024`. */
  images?: Readonly<Record<string, number>>;
  /** Characters that were spoken, as Unicode code points. */
  characters?: number;
  /** Seconds of sound that were transcribed; a second that has begun counts. */
  audioSeconds?: number;
  /**
   * Set where the response is from the project's cache: `price.costFactor` is the charged part of
   * the price.
   */
  cached?: true;
  /** The cost by the provider's price list, as a decimal string; absent where unknown. */
  upstreamCost?: string;
}

/** The parts of this service that choose idempotency keys themselves, such as `stripe:cs_…`. */
export const keyIssuers = ["stripe", "console", "sandbox"] as const;
/** Which part of this service chose an idempotency key. */
export type KeyIssuer = typeof keyIssuers[number];

/** One immutable movement of one account. Amounts are decimal strings in currency units. */
export interface Entry {
  id: string;
  /** The entry's number in its account, from 1 without gaps. */
  seq: number;
  /** The previous entry of the account. */
  prev: string | null;
  kind: EntryKind;
  user: string;
  /** In a wallet: the project that the entry belongs to, or `noProject`. */
  projectId?: string;
  /** The change of the balance, with its sign. */
  delta: string;
  balanceAfter: string;
  heldAfter: string;
  /**
   * The part of the amount that could not be collected; negative where an earlier one is no longer
   * due.
   */
  shortfall: string;
  /** In milliseconds since 1970. */
  createdAt: number;
  idempotencyKey: string | null;
  /** Which part of this service chose the key. `caller`, in some entries of 0.9.0, is as absent. */
  keyIssuer?: KeyIssuer | "caller";
  metadata: JsonObject | null;
  usage: EntryUsage | null;
  /** Why the money moved; absent where the kind and the direction say it: see `entryReason`. */
  reason?: EntryReason;
  /** Who caused it; absent in entries of 0.9.0: see `actorOf`. */
  actor?: EntryActor;
  /** Of a refund: the refunded entry. Of a reinstatement: the entry whose refund is reversed. */
  refundedActivityId: string | null;
  /** The budgets that the amount counts toward, by name; absent where there are none. */
  budgets?: readonly string[];
  /** Of a transfer: the other wallet, and the entry that moved the same amount there. */
  transfer?: { wallet: string; activityId: string };
  /** Only of an entry of the kind `carried`: the archived entries that it stands for. */
  carried?: CarriedEntries;
}

/** Who caused an entry. Never a secret. */
export interface EntryActor {
  type: "key" | "operator" | "stripe" | "user" | "system";
  /** The API key's id, the operator's name, the user; else the same as `type`. */
  id: string;
}

/** The archived entries that one entry stands for. */
export interface CarriedEntries {
  /** How many entries were archived. */
  entries: number;
  /** When the first archived entry was created, in milliseconds since 1970. */
  since: number;
}

/** Stands in place of a project's id in entries that move money between wallets. */
export const noProject = "none";

/** The part of an entry that the caller decides; the account adds the rest. */
export type NewEntry =
  & Pick<Entry, "kind">
  & Partial<
    Pick<
      Entry,
      | "id"
      | "idempotencyKey"
      | "keyIssuer"
      | "metadata"
      | "usage"
      | "refundedActivityId"
      | "budgets"
      | "reason"
    >
  >;

/** Builds an entry from the state of its account after it. */
export function createEntry(
  {
    id,
    kind,
    idempotencyKey,
    keyIssuer,
    metadata,
    usage,
    refundedActivityId,
    budgets,
    reason,
    actor,
  }:
    & NewEntry
    & { id: string; actor?: EntryActor },
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
    ...(keyIssuer ? { keyIssuer } : {}),
    metadata: metadata ?? null,
    usage: usage ?? null,
    refundedActivityId: refundedActivityId ?? null,
    ...(budgets && budgets.length > 0 ? { budgets } : {}),
    ...(reason ? { reason } : {}),
    ...(actor ? { actor } : {}),
  };
}

/**
 * Whether an entry is for a use of the app, so that it is revenue: a response, or a charge without
 * another reason, such as a forfeited balance.
 */
export function isUse(entry: Omit<Entry, "id">): boolean {
  const reason = entryReason(entry);
  return reason === "usage" || reason === "charge";
}

/** Returns why an entry moved money: what it states, or else what its kind and direction say. */
export function entryReason(entry: Omit<Entry, "id">): EntryReason {
  const { reason, kind, delta, refundedActivityId, metadata } = entry;
  if (reason) return reason;
  const isCredit = !delta.startsWith("-");
  // Stripe's type of event, in entries of 0.9.0.
  const isDispute = String(metadata?.reason).startsWith("charge.dispute");
  switch (kind) {
    case "deposit":
      if (refundedActivityId === null) return "payment";
      return isDispute ? "dispute_won" : "reversal";
    case "refund":
      if (isCredit && delta !== "0") return "refund";
      return isDispute ? "dispute" : "reversal";
    case "charge":
    case "trial":
    case "transfer":
      return kind;
    case "usage":
    case "expired":
    case "carried":
      return "usage";
  }
}

/** Returns who caused an entry; null where an entry of 0.9.0 does not tell. */
export function actorOf(
  { actor, kind, keyIssuer, metadata }: Omit<Entry, "id">,
): EntryActor | null {
  if (actor) return actor;
  if (keyIssuer === "stripe") return { type: "stripe", id: "stripe" };
  if (keyIssuer === "console" && typeof metadata?.by === "string") {
    return { type: "operator", id: metadata.by };
  }
  return kind === "trial" || kind === "expired" ? { type: "system", id: "system" } : null;
}

/** All tokens of a response. */
export function totalTokens(usage: EntryUsage): number {
  return storedTotal(usage);
}

/** Returns how much an entry moved, never negative. */
export function absoluteAmount(entry: Pick<Entry, "delta">): string {
  return entry.delta.replace("-", "");
}

/**
 * Returns the id of the activity that will charge a request, which is known before it is written.
 */
export function activityIdOfRequest(requestId: string): string {
  return requestId.replace(/^req_/, "act_");
}
