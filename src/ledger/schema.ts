import { z } from "zod";
import { type StoredTokens, tokenClassRows } from "../base/token_classes.ts";
import { userField } from "../base/fields.ts";
import { isObject, type JsonObject } from "../base/json.ts";
import { utf8Length } from "../base/utf8.ts";
import { metadataBytesMax, metadataKeysMax, userIdUnitsMax } from "../base/limits.ts";
import { chargeReasons, depositReasons } from "../base/entry_reasons.ts";
import { parseAmount } from "../base/money.ts";
import { fingerprints, markSchema } from "./verify/marks.ts";

/** A decimal amount greater than zero, as a string. The interface never takes a number. */
const amountSchema = z.string({
  error: 'must be a decimal string such as "12.50"',
}).transform((text, context) => {
  const amount = parseAmount(text);
  if (amount !== null && amount > 0n) return amount;
  context.addIssue(
    'must be a decimal greater than zero, such as "12.50": ' +
      "at most 12 digits before the point and 9 after it",
  );
  return z.NEVER;
}).meta({
  description: "A decimal greater than zero, in currency units, as a string.",
  override: {
    type: "string",
    pattern: "^\\d{1,12}(\\.\\d{1,9})?$",
    not: { pattern: "^0+(\\.0+)?$" },
  },
  example: "12.50",
});

const metadataSchema = z.custom<JsonObject>(isObject, { error: "must be a JSON object" })
  .refine((value) => Object.keys(value).length <= metadataKeysMax, {
    error: `must have at most ${metadataKeysMax} keys`,
  }).refine((value) => utf8Length(JSON.stringify(value)) <= metadataBytesMax, {
    error: `must be at most ${metadataBytesMax} bytes as JSON`,
  }).meta({
    description: `Your own references: at most ${metadataBytesMax / 1024} KiB as JSON.`,
    override: { type: "object", maxProperties: metadataKeysMax },
  });

/** Schemas of an entry's token counts; some are present only where there were such tokens. */
export function tokenFieldSchemas(
  make: (description: string) => z.ZodInt,
): TokenFieldSchemas {
  return Object.fromEntries(tokenClassRows.map(({ field, description, always }) => {
    const schema = make(description);
    return [field, always ? schema : schema.optional()];
  })) as TokenFieldSchemas;
}
type TokenFieldSchemas = {
  [Field in keyof StoredTokens]-?: undefined extends StoredTokens[Field] ? z.ZodOptional<z.ZodInt>
    : z.ZodInt;
};

const decimal = z.string().regex(/^-?\d{1,40}(\.\d{1,9})?$/);

const moneyFields = {
  user: userField,
  amount: amountSchema,
  metadata: metadataSchema.nullish(),
};

/** The body of a deposit. `user` is validated by `endUser`. */
export const depositBodySchema = z.strictObject({
  ...moneyFields,
  reason: z.enum(depositReasons).optional().meta({
    description: "Why the money moves; `payment` where it is omitted. With `opening`, a new user " +
      "gets no trial credit on top, and no event is sent.",
  }),
  sendEvents: z.boolean().optional().meta({
    description: "Whether events are sent; by default for every reason except `opening`.",
  }),
}).meta({ id: "DepositRequest" });

/** The body of a charge. `user` is validated by `endUser`. */
export const chargeBodySchema = z.strictObject({
  ...moneyFields,
  reason: z.enum(chargeReasons).optional().meta({
    description: "Why the money moves; `charge` where it is omitted.",
  }),
}).meta({ id: "ChargeRequest" });

/** The body of a deposit or of a charge. */
export type MoneyBody = z.output<typeof depositBodySchema> | z.output<typeof chargeBodySchema>;

/** The body of a refund. Without an amount, the remaining amount of the entry is refunded. */
export const refundBodySchema = z.strictObject({
  user: userField,
  activityId: z.string().regex(/^act_[0-9A-HJKMNP-TV-Z]{26}$/, { error: "is not an activity id" })
    .meta({ description: "The deposit, charge or usage to refund." }),
  amount: amountSchema.optional().meta({
    description: "In currency units, as a string. Omitted: the remaining amount.",
  }),
  metadata: metadataSchema.nullish(),
}).meta({ id: "RefundRequest" });
/** The body of a refund. */
export type RefundBody = z.output<typeof refundBodySchema>;

/** The body of the operator's `POST …/users/{user}/forget`. */
export const forgetBodySchema = z.strictObject({
  forfeit: z.boolean().default(false).meta({ description: "Take what is left of the balance." }),
});

/** The position of a walk over an account's entries, from its last one back to its first. */
const walkSchema = z.strictObject({
  owner: z.string().max(64),
  name: z.string().max(userIdUnitsMax),
  /** The account when the walk began: its last entry, that entry's number, and the balance. */
  last: z.string().max(64).nullable(),
  lastSeq: z.int(),
  lastBalance: decimal,
  /**
   * The next entry, its expected number and the balance it should leave; null where that is unknown
   * because the entry after it cannot be read.
   */
  next: z.string().max(64).nullable(),
  seq: z.int(),
  balance: decimal.nullable(),
  /**
   * Once the walk has met a `carried` entry: what the entries kept before it must add up to, and
   * how many they are. The numbers of those have gaps.
   */
  carried: z.strictObject({ sum: decimal, entries: z.int() }).nullable(),
  /** Refunded amounts of entries that the walk has not met yet. */
  refunds: z.array(z.tuple([z.string().max(64), decimal])).max(100),
  /** Whether refunded amounts were too many to carry along, or one could not be read. */
  forgotten: z.boolean(),
  /** The user's former name, on entries that are not renamed yet. */
  formerly: z.string().max(userIdUnitsMax).nullable(),
  /** The account's mark when the walk began, and its version. */
  mark: markSchema.nullable(),
  markVersion: z.string().max(64).nullable(),
  /** Whether the walk ends at the mark. */
  isSince: z.boolean(),
  /** The fingerprints of the entries met, in all, and of those up to the mark. */
  sum: fingerprints,
  sumToMark: fingerprints,
  hasFaults: z.boolean(),
});
/** The position of a walk over an account's entries. */
export type ChainWalk = z.output<typeof walkSchema>;

const placeId = z.string().max(64).nullable();

/** The position of the ledger's verification: between two owners, or within one. */
export const ledgerPlaceSchema = z.strictObject({
  /** Entries up to this time, in ms, were all written before the verification began. */
  cut: z.number(),
  owner: placeId,
  /** The last owner who was checked completely. */
  done: placeId,
  /** The versions of the owner's last move of an account, and of its last archiving. */
  moved: placeId,
  archived: placeId,
  /** The name of the last account that was checked; null before the first. */
  account: z.string().max(userIdUnitsMax).nullable(),
  walk: walkSchema.nullable(),
  /** While entries are counted: after which one, and before which id. */
  listing: z.strictObject({ after: z.string().max(64), end: z.string().max(64) })
    .refine(({ after, end }) => after < end).nullable(),
  /** This owner's entries up to `cut`: how many its accounts lead to, and how many are stored. */
  chained: z.int(),
  listed: z.int(),
});
/** The position of the ledger's verification. */
export type LedgerPlace = z.output<typeof ledgerPlaceSchema>;
