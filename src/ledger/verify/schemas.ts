import { entryKindNames } from "../../base/entry_kinds.ts";
import { z } from "zod";
import { formatNames } from "../../base/endpoints.ts";
import { tokenFieldSchemas } from "../schema.ts";
import { fromBytes, isObject, type JsonObject } from "../../base/json.ts";
import { userIdUnitsMax } from "../../base/limits.ts";
import { type Amount, fromDecimal } from "../../base/money.ts";
import { type Account, type AccountRef, parseAccount } from "../account.ts";
import { type Entry, keyIssuers } from "../entry.ts";
import { decodeEntry, decodeIdempotency, type IdempotencyRecord } from "../store.ts";

// What every version of the ledger has stored, as the verification reads it. Damage shows here, so
// nothing may pass that would break a key or a cursor. Unknown fields belong to a later version.

/** An id. A cursor cannot carry a longer one. */
const id = z.string().min(1).max(64);
const user = z.string().min(1).max(userIdUnitsMax);
/** A decimal amount. A cursor has space for a sum of several. */
const decimal = z.string().regex(/^-?\d{1,36}(\.\d{1,9})?$/);
const units = z.string().regex(/^-?\d{1,45}$/);
const tokens = z.int().min(0);

const priceSchema = z.record(z.string().max(128), z.string().regex(/^-?\d{1,36}(\.\d{1,12})?$/))
  .refine((price) => ["input", "output", "markupPercent", "requestFee"].every((f) => f in price));

const usageSchema = z.object({
  model: z.string(),
  requestId: z.string(),
  source: z.enum(["provider", "estimated"]),
  ...tokenFieldSchemas(() => tokens),
  price: priceSchema,
  endpoint: z.enum(formatNames).optional(),
  servedModel: z.string().optional(),
  serviceTier: z.string().optional(),
  toolCalls: z.record(z.string(), tokens).optional(),
  images: z.record(z.string(), tokens).optional(),
  characters: tokens.optional(),
  audioSeconds: tokens.optional(),
  upstream: z.string().optional(),
  attempts: z.int().min(2).optional(),
  cached: z.literal(true).optional(),
  upstreamCost: decimal.optional(),
});

/** The link from an entry to the previous one. */
const linkSchema = z.object({ seq: z.int().min(1), prev: id.nullable() });

const entrySchema = linkSchema.extend({
  id,
  kind: z.enum(entryKindNames),
  user,
  projectId: id.optional(),
  delta: decimal,
  balanceAfter: decimal,
  heldAfter: decimal,
  shortfall: decimal,
  createdAt: z.int(),
  idempotencyKey: z.string().nullable(),
  keyIssuer: z.enum([...keyIssuers, "caller"]).optional(),
  metadata: z.custom<JsonObject>(isObject).nullable(),
  usage: usageSchema.nullable(),
  refundedActivityId: id.nullable(),
  budgets: z.array(id).min(1).optional(),
  transfer: z.object({ wallet: id, activityId: id }).optional(),
  carried: z.object({ entries: z.int().min(1), since: z.int() }).optional(),
});

const earlierCounts = z.array(
  z.tuple([z.string(), units, z.number().optional(), z.number().optional()]),
);

const accountSchema = z.object({
  balance: units,
  seq: z.int().min(0),
  last: id.nullable(),
  holds: z.array(z.tuple([
    id,
    units,
    z.number(),
    units,
    id.nullable().optional(),
    z.array(z.tuple([id, units])).optional(),
    id.optional(),
  ])),
  listed: z.boolean(),
  counters: z.object({ requests: z.number(), tokens: z.number() }).optional(),
  use: z.tuple([
    z.string(),
    z.number(),
    z.number(),
    units,
    z.string(),
    units,
    z.number(),
    units,
    earlierCounts.optional(),
    earlierCounts.optional(),
  ]).optional(),
  formerly: user.optional(),
  closed: z.literal(true).optional(),
});

const idempotencySchema = z.object({
  activityId: id,
  fingerprint: z.string(),
  owner: id.optional(),
});

/** An account, and the user it is used for. */
export const accountRefSchema = z.object({
  projectId: id,
  user,
  wallet: z.object({ personId: id, currency: id, connectionId: id }).optional(),
});

const holdingSchema = z.object({ ref: accountRefSchema });

/** Parses an entry. Throws for bytes that no version has written. */
export function parseStoredEntry(bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  entrySchema.parse(entry);
  return entry;
}

/** Parses only an entry's link to the previous one. */
export function parseEntryLink(bytes: Uint8Array): { seq: number; prev: string | null } {
  return linkSchema.parse(fromBytes<unknown>(bytes));
}

/** Parses how much of an entry has been refunded. */
export function parseStoredRefunded(bytes: Uint8Array): Amount {
  return fromDecimal(decimal.parse(fromBytes<unknown>(bytes)));
}

/** Parses an account. */
export function parseStoredAccount(bytes: Uint8Array): Account {
  accountSchema.parse(fromBytes<unknown>(bytes));
  return parseAccount(bytes);
}

/** Parses the record of an idempotency key. */
export function parseStoredIdempotency(bytes: Uint8Array): IdempotencyRecord {
  const record = decodeIdempotency(bytes);
  idempotencySchema.parse(record);
  return record;
}

/** Parses which account a row of the hold index names. */
export function parseHoldIndexRow(bytes: Uint8Array): AccountRef {
  return holdingSchema.parse(fromBytes<unknown>(bytes)).ref;
}
