import { entryKindNames } from "../base/entry_kinds.ts";
import { z } from "zod";
import { mapTokenFields } from "../base/token_classes.ts";
import { currency, decimal, idOf, metadata, nextCursor, time, userId } from "../base/fields.ts";
import {
  type Amount,
  formatAmount,
  formatForPeople,
  fromDecimal,
  least,
  toAmount,
} from "../base/money.ts";
import { type Account, availableIn } from "./account.ts";
import { absoluteAmount, type Entry } from "./entry.ts";

/** A balance as every answer about money shows it. */
export const balanceFields = {
  balance: decimal.meta({ description: "All there is, in currency units." }),
  held: decimal.meta({ description: "Set aside for answers that are running." }),
  available: decimal.meta({ description: "`balance` less `held`: never below zero." }),
  balanceFormatted: z.string().meta({ description: "The balance for people: `$12.34`." }),
};
const balanceViewSchema = z.object(balanceFields);
/** A balance as every answer about money shows it; exact decimal strings, but for the last. */
export type BalanceView = z.output<typeof balanceViewSchema>;

const activityId = idOf("act", "The activity: one entry of the ledger.");

/** The answer to a deposit. */
export const depositedSchema = z.object({
  success: z.literal(true),
  activityId,
  user: userId,
  amount: decimal.meta({ description: "What was moved, never negative." }),
  currency,
  ...balanceFields,
}).meta({ id: "Deposited" });
/** The answer to a deposit. */
export type Deposited = z.output<typeof depositedSchema>;

/** The answer to a charge that was taken. */
export const chargedSchema = depositedSchema.extend({
  message: z.string().meta({ description: "A sentence for people." }),
}).meta({ id: "Charged" });

/** The answer to a charge that was not taken: nothing has changed. */
export const refusedSchema = z.object({
  success: z.literal(false),
  reason: z.enum(["insufficient_funds", "authorization_required", "limit_reached"]),
  message: z.string().meta({ description: "The sentence to show to the user; it holds the link." }),
  url: z.string().meta({ description: "Where the user tops up, or allows the charge." }),
  ...balanceFields,
}).meta({ id: "Refused" });
/** The answer to a charge that was not taken. */
export type Refused = z.output<typeof refusedSchema>;

/** The answer to a refund. */
export const refundedSchema = depositedSchema.extend({
  refundedActivityId: activityId.meta({ description: "What was refunded." }),
  shortfall: decimal.meta({
    description: "Of a deposit: what the user had spent already, and could not be taken back.",
  }),
}).meta({ id: "Refunded" });

/** The answer to a question for a balance. */
export const balanceSchema = z.object({ user: userId, currency, ...balanceFields })
  .meta({ id: "Balance" });
/** The answer to a question for a balance. */
export type Balance = z.output<typeof balanceSchema>;

const tokens = z.int().min(0);
const tokenFields = mapTokenFields(({ description }) => tokens.meta({ description }));
const usageSchema = z.object({
  model: z.string(),
  requestId: z.string().meta({ description: "The `X-Request-Id` of the answer." }),
  source: z.enum(["provider", "estimated"]).meta({
    description: "Who counted: the upstream, or Farebox.",
  }),
  ...tokenFields,
  price: z.record(z.string(), z.string()).meta({
    description: "The price used: decimal strings, per million tokens and per request.",
  }),
}).meta({ id: "Usage" });

/** One entry of the ledger, as lists of activities show it. */
export const activitySchema = z.object({
  id: activityId,
  kind: z.enum(entryKindNames),
  user: userId,
  amount: decimal.meta({ description: "What was moved, never negative." }),
  delta: decimal.meta({
    description: "The same, with the sign with which it changed the balance.",
  }),
  currency,
  balanceAfter: decimal.meta({ description: "The balance right after it." }),
  shortfall: decimal.meta({
    description: "What was due and could not be collected; below zero where such is due no more.",
  }),
  createdAt: time,
  idempotencyKey: z.string().nullable(),
  metadata: metadata.nullable(),
  usage: usageSchema.nullable().meta({ description: "What an answer used; null for the rest." }),
  refundedActivityId: activityId.nullable().meta({
    description: "Of a refund: what it refunds. Of a deposit: what it was taken back of before.",
  }),
}).meta({ id: "Activity" });
/** One entry of the ledger, as lists of activities show it. */
export type Activity = z.output<typeof activitySchema>;

/** A page of activities, newest first. */
export const activitiesSchema = z.object({ activities: z.array(activitySchema), nextCursor })
  .meta({ id: "Activities" });
/** A page of activities, newest first. */
export type ActivityList = z.output<typeof activitiesSchema>;

/** The answer to a question for a link. */
export const topUpLinkSchema = z.object({
  url: z.string().meta({ description: "Where this user tops up. A hosted page's ends in a week." }),
}).meta({ id: "TopUpLink" });
/** The answer to a question for a link. */
export type TopUpLink = z.output<typeof topUpLinkSchema>;

/** The view of exact amounts. */
export function viewBalance(balance: Amount, held: Amount, currency: string): BalanceView {
  return {
    balance: formatAmount(balance),
    held: formatAmount(held),
    available: formatAmount(balance - held),
    balanceFormatted: formatForPeople(balance, currency),
  };
}

/**
 * An account as it counts at `now`: an expired hold is no hold, and its recorded use is charged.
 */
export function settledAt(account: Account, now: number): { balance: Amount; held: Amount } {
  const expired = account.holds.filter((hold) => hold.expiresAt <= now);
  const freed = expired.reduce((sum, hold) => sum + hold.amount, 0n);
  const held = toAmount(account.held - freed);
  const used = toAmount(expired.reduce((sum, hold) => sum + hold.used, 0n));
  const spendable = availableIn({ balance: account.balance, held });
  return { balance: toAmount(account.balance - least(used, spendable)), held };
}

/** The balance right after an entry, as its maker's answer shows it, also when asked again. */
export function viewAfter(entry: Entry, currency: string): BalanceView {
  return viewBalance(fromDecimal(entry.balanceAfter), fromDecimal(entry.heldAfter), currency);
}

/** An entry as callers see it in a list of activities. */
export function toActivity(entry: Entry, currency: string): Activity {
  return {
    id: entry.id,
    kind: entry.kind,
    user: entry.user,
    amount: absoluteAmount(entry),
    delta: entry.delta,
    currency,
    balanceAfter: entry.balanceAfter,
    shortfall: entry.shortfall,
    createdAt: new Date(entry.createdAt).toISOString(),
    idempotencyKey: entry.idempotencyKey,
    metadata: entry.metadata,
    usage: entry.usage && { ...entry.usage },
    refundedActivityId: entry.refundedActivityId,
  };
}
