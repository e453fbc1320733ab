import { activityKindNames } from "../../base/entry_kinds.ts";
import { z } from "zod";
import { publicRefusalReasons } from "../../base/refusal_reasons.ts";
import { formatNames } from "../../base/endpoints.ts";
import type { JsonObject } from "../../base/json.ts";
import { currency, decimal, idOf, metadata, nextCursor, time, userId } from "../../base/fields.ts";
import {
  type Amount,
  formatAmount,
  formatForPeople,
  fromDecimal,
  least,
  toAmount,
} from "../../base/money.ts";
import { type Account, availableIn } from "../account.ts";
import type { HasEnded } from "../hold_end.ts";
import {
  absoluteAmount,
  actorOf,
  type CarriedEntries,
  type Entry,
  entryReason,
  type EntryUsage,
} from "../entry.ts";
import { entryReasonNames, entryReasons } from "../../base/entry_reasons.ts";
import { tokenFieldSchemas } from "../schema.ts";

/** A balance as every response about money shows it. */
export const balanceFields = {
  balance: decimal.meta({ description: "The whole balance, in currency units." }),
  held: decimal.meta({ description: "Set aside for running calls." }),
  available: decimal.meta({ description: "`balance` less `held`: never negative." }),
  balanceFormatted: z.string().meta({ description: "The balance formatted for people: `$12.34`." }),
};
const balanceViewSchema = z.object(balanceFields);
/**
 * A balance as every response about money shows it: exact decimal strings, except for the last
 * field.
 */
export type BalanceView = z.output<typeof balanceViewSchema>;

const activityId = idOf("act", "The id of the activity, which is one entry of the ledger.");

/** The response to a deposit. */
export const depositedSchema = z.object({
  success: z.literal(true),
  activityId,
  user: userId,
  amount: decimal.meta({ description: "The amount that moved, never negative." }),
  currency,
  ...balanceFields,
}).meta({ id: "Deposited" });
/** The response to a deposit. */
export type Deposited = z.output<typeof depositedSchema>;

/** The response to a charge that was taken. */
export const chargedSchema = depositedSchema.extend({
  message: z.string().meta({ description: "A sentence to show to people." }),
}).meta({ id: "Charged" });

/** The response to a refused charge: nothing has changed. */
export const refusedSchema = z.object({
  success: z.literal(false),
  reason: z.enum(publicRefusalReasons),
  message: z.string().meta({
    description: "The sentence to show to the user; it contains the link.",
  }),
  url: z.string().meta({ description: "Where the user tops up, or authorizes the charge." }),
  retryAfter: z.int().optional().meta({
    description: "With `balance_held`: after so many seconds the charge may be repeated.",
  }),
  ...balanceFields,
}).meta({ id: "Refused" });
/** The response to a refused charge. */
export type Refused = z.output<typeof refusedSchema>;

/** The response to a refund. */
export const refundedSchema = depositedSchema.extend({
  refundedActivityId: activityId.meta({ description: "What was refunded." }),
  shortfall: decimal.meta({
    description: "For a deposit: what the user had already spent, which could not be taken back.",
  }),
}).meta({ id: "Refunded" });

/** The response to a balance request. */
export const balanceSchema = z.object({ user: userId, currency, ...balanceFields })
  .meta({ id: "Balance" });
/** The response to a balance request. */
export type Balance = z.output<typeof balanceSchema>;

const tokens = z.int().min(0);
const tokenFields = tokenFieldSchemas((description) => tokens.meta({ description }));
const usageSchema = z.object({
  model: z.string(),
  requestId: z.string().meta({ description: "The `X-Request-Id` of the response." }),
  source: z.enum(["provider", "estimated"]).meta({
    description: "Who counted the tokens: the upstream, or Farebox.",
  }),
  ...tokenFields,
  price: z.record(z.string(), z.string()).meta({
    description: "The prices used: decimal strings, per million tokens, per request and per " +
      "unit.",
  }),
  endpoint: z.enum(formatNames).optional().meta({
    description: "The endpoint that was called; absent for chat completions.",
  }),
  servedModel: z.string().optional().meta({
    description: "The model that answered, where it is another than the one requested.",
  }),
  serviceTier: z.string().optional().meta({
    description: "The service tier that served it, or else that was requested.",
  }),
  toolCalls: z.record(z.string(), z.int().min(0)).optional().meta({
    description: "Calls of tools that ran at the provider, by the tool's name.",
  }),
  images: z.record(z.string(), z.int().min(0)).optional().meta({
    description: "Images that were made, by the name of the price that applied.",
  }),
  characters: z.int().min(0).optional().meta({
    description: "Characters that were spoken, as Unicode code points.",
  }),
  audioSeconds: z.int().min(0).optional().meta({
    description: "Seconds of sound that were transcribed; a second that has begun counts.",
  }),
  upstream: z.string().optional().meta({
    description: "The name of the upstream that answered, where a route leads to it.",
  }),
  attempts: z.int().min(2).optional().meta({
    description: "How many attempts the response took; absent where it took one.",
  }),
  cached: z.literal(true).optional().meta({
    description: "The response is from the project's cache: `price.costFactor` of its price was " +
      "charged.",
  }),
  upstreamCost: decimal.optional().meta({
    description: "What the response costs by the provider's price list; absent where unknown.",
  }),
  margin: decimal.optional().meta({
    description: "What was charged, less `upstreamCost`; absent where that is unknown.",
  }),
}).meta({ id: "Usage" });

const actorSchema = z.object({
  type: z.enum(["key", "operator", "stripe", "user", "system"]),
  id: z.string().meta({ description: "The API key's id, the operator's name, or the user." }),
}).meta({ id: "Actor" });

/** One entry of the ledger, as lists of activities show it. */
const activitySchema = z.object({
  id: activityId,
  kind: z.enum(activityKindNames),
  reason: z.enum(entryReasonNames).meta({
    description: "Why the money moved: " +
      Object.entries(entryReasons).map(([name, { description }]) => `\`${name}\`: ${description}`)
        .join(" "),
  }),
  actor: actorSchema.nullable().meta({
    description: "Who caused it; null in entries of version 0.9 that do not tell.",
  }),
  user: userId,
  amount: decimal.meta({ description: "The amount that moved, never negative." }),
  delta: decimal.meta({
    description: "The same amount with its sign: how it changed the balance.",
  }),
  currency,
  balanceAfter: decimal.meta({ description: "The balance right after the entry." }),
  shortfall: decimal.meta({
    description: "What was due and could not be collected; negative where it is no longer due.",
  }),
  createdAt: time,
  idempotencyKey: z.string().nullable(),
  metadata: metadata.nullable(),
  usage: usageSchema.nullable().meta({
    description: "What a response used; null for other kinds.",
  }),
  refundedActivityId: activityId.nullable().meta({
    description:
      "For a refund: the refunded activity. For a deposit that reverses a refund: the original.",
  }),
  carried: z.object({
    entries: z.int().min(1).meta({ description: "How many." }),
    since: time.meta({ description: "When the first of them was created." }),
  }).optional().meta({
    description: "Only of the kind `carried`: the archived activities that this one stands for. " +
      "Its amounts are their sums.",
  }),
}).meta({ id: "Activity" });
/** One entry of the ledger, as lists of activities show it. */
type Activity = z.output<typeof activitySchema>;

/** A page of activities, newest first. */
export const activitiesSchema = z.object({ activities: z.array(activitySchema), nextCursor })
  .meta({ id: "Activities" });
/** A page of activities, newest first. */
export type ActivityList = z.output<typeof activitiesSchema>;

/** The response to a request for a top-up link. */
export const topUpLinkSchema = z.object({
  url: z.string().meta({
    description: "Where this user tops up. The link to a hosted page expires after a week.",
  }),
}).meta({ id: "TopUpLink" });
/** The response to a request for a top-up link. */
export type TopUpLink = z.output<typeof topUpLinkSchema>;

/** Returns the view of exact amounts. */
export function viewBalance(balance: Amount, held: Amount, currency: string): BalanceView {
  return {
    balance: formatAmount(balance),
    held: formatAmount(held),
    available: formatAmount(balance - held),
    balanceFormatted: formatForPeople(balance, currency),
  };
}

/**
 * Returns an account as it counts now: holds that have ended are gone, and their recorded use is
 * charged.
 */
export function settledNow(
  account: Account,
  hasEnded: HasEnded,
): { balance: Amount; held: Amount } {
  const ended = account.holds.filter(hasEnded);
  const freed = ended.reduce((sum, hold) => sum + hold.amount, 0n);
  const held = toAmount(account.held - freed);
  const used = toAmount(ended.reduce((sum, hold) => sum + hold.used, 0n));
  const spendable = availableIn({ balance: account.balance, held });
  return { balance: toAmount(account.balance - least(used, spendable)), held };
}

/**
 * Returns the balance right after an entry, as the response that created it shows it, and any
 * replay of it.
 */
export function viewAfter(entry: Entry, currency: string): BalanceView {
  return viewBalance(fromDecimal(entry.balanceAfter), fromDecimal(entry.heldAfter), currency);
}

/** Returns an entry as the list of activities shows it. */
export function toActivity(entry: Entry, currency: string): Activity {
  const { kind } = entry;
  if (kind === "transfer") throw new Error(`${entry.id} belongs to no project`);
  return {
    id: entry.id,
    kind,
    reason: entryReason(entry),
    actor: actorOf(entry),
    user: entry.user,
    amount: absoluteAmount(entry),
    delta: entry.delta,
    currency,
    balanceAfter: entry.balanceAfter,
    shortfall: entry.shortfall,
    createdAt: new Date(entry.createdAt).toISOString(),
    idempotencyKey: entry.idempotencyKey,
    metadata: entry.metadata,
    usage: entry.usage && viewUsage(entry, entry.usage),
    refundedActivityId: entry.refundedActivityId,
    ...(entry.carried ? { carried: viewCarried(entry.carried) } : {}),
  };
}

function viewCarried({ entries, since }: CarriedEntries): NonNullable<Activity["carried"]> {
  return { entries, since: new Date(since).toISOString() };
}

function viewUsage(entry: Entry, usage: EntryUsage): NonNullable<Activity["usage"]> {
  const { upstreamCost } = usage;
  if (upstreamCost === undefined) return { ...usage };
  const charged = fromDecimal(absoluteAmount(entry));
  return { ...usage, margin: formatAmount(charged - fromDecimal(upstreamCost)) };
}

/** An entry as the API shows it, as a flat JSON object for exports and CSV. */
export function activityRecord(entry: Entry, currency: string): JsonObject {
  const { usage, carried, ...rest } = toActivity(entry, currency);
  const activity = carried ? { ...rest, carried } : rest;
  if (!usage) return { ...activity, usage };
  const present = Object.entries(usage).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const]
  );
  return { ...activity, usage: Object.fromEntries(present) };
}
