import { entryKindNames } from "../base/entry_kinds.ts";
import { z } from "zod";
import { mapPriceFields, mapTokenFields } from "../base/token_classes.ts";
import { fromBytes, isObject, type JsonObject } from "../base/json.ts";
import { userIdUnitsMax } from "../base/limits.ts";
import { type Amount, fromDecimal } from "../base/money.ts";
import { type Account, type AccountRef, parseAccount } from "./account.ts";
import type { Entry } from "./entry.ts";
import { decodeEntry, decodeIdempotency, type IdempotencyRecord } from "./store.ts";

// What the ledger has ever stored, as the verification reads it: it is here that damage shows, and
// nothing may be made of it that breaks a key or a cursor. Further fields are a later version's.

/** An id of ours: a cursor carries none that is longer. */
const id = z.string().min(1).max(64);
const user = z.string().min(1).max(userIdUnitsMax);
/** With room in a cursor for the sum of some. */
const decimal = z.string().regex(/^-?\d{1,36}(\.\d{1,9})?$/);
const units = z.string().regex(/^-?\d{1,45}$/);
const tokens = z.int().min(0);

const priceSchema = z.object({
  ...mapPriceFields(() => decimal),
  markupPercent: decimal,
  requestFee: decimal,
});

const tokenFields = mapTokenFields(() => tokens);
const usageSchema = z.object({
  model: z.string(),
  requestId: z.string(),
  source: z.enum(["provider", "estimated"]),
  ...tokenFields,
  price: priceSchema,
});

/** What leads from an entry to the one before it. */
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
  metadata: z.custom<JsonObject>(isObject).nullable(),
  usage: usageSchema.nullable(),
  refundedActivityId: id.nullable(),
});

const accountSchema = z.object({
  balance: units,
  seq: z.int().min(0),
  last: id.nullable(),
  holds: z.array(z.tuple([id, units, z.number(), units, id.optional()])),
  listed: z.boolean(),
  counters: z.object({ requests: z.number(), tokens: z.number() }).optional(),
  use: z.tuple([
    z.string(),
    z.number(),
    z.number(),
    units,
    z.string().optional(),
    units.optional(),
  ]).optional(),
  formerly: user.optional(),
  closed: z.literal(true).optional(),
});

const idempotencySchema = z.object({
  activityId: id,
  fingerprint: z.string(),
  owner: id.optional(),
});

/** Whose account, and for whom. */
export const accountRefSchema = z.object({
  projectId: id,
  user,
  wallet: z.object({ personId: id, currency: id, connectionId: id }).optional(),
});

const holdingSchema = z.object({ ref: accountRefSchema });

/** Reads an entry. This and the others throw for whatever no version of ours has written. */
export function parseStoredEntry(bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  entrySchema.parse(entry);
  return entry;
}

/** Reads of an entry no more than what leads on to the one before it. */
export function parseEntryLink(bytes: Uint8Array): { seq: number; prev: string | null } {
  return linkSchema.parse(fromBytes<unknown>(bytes));
}

/** Reads how much of an entry has been refunded. */
export function parseStoredRefunded(bytes: Uint8Array): Amount {
  return fromDecimal(decimal.parse(fromBytes<unknown>(bytes)));
}

/** Reads an account. */
export function parseStoredAccount(bytes: Uint8Array): Account {
  accountSchema.parse(fromBytes<unknown>(bytes));
  return parseAccount(bytes);
}

/** Reads what an idempotency key stands for. */
export function parseStoredIdempotency(bytes: Uint8Array): IdempotencyRecord {
  const record = decodeIdempotency(bytes);
  idempotencySchema.parse(record);
  return record;
}

/** Reads which account a row says to hold money. */
export function parseHoldIndexRow(bytes: Uint8Array): AccountRef {
  return holdingSchema.parse(fromBytes<unknown>(bytes)).ref;
}
