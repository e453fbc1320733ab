import { z } from "zod";
import { isObject, type JsonObject, utf8Length } from "../base/json.ts";
import { metadataBytesMax, metadataKeysMax } from "../base/limits.ts";
import { parseAmount } from "../base/money.ts";

/** A decimal amount greater than zero, as a string: decision of the interface, never a number. */
const amountSchema = z.string({ error: "must be a decimal string" }).transform((text, context) => {
  const amount = parseAmount(text);
  if (amount !== null && amount > 0n) return amount;
  context.addIssue(
    'must be a decimal greater than zero such as "12.50": ' +
      "at most 12 digits before the point and 9 after it",
  );
  return z.NEVER;
});

const metadataSchema = z.custom<JsonObject>(isObject, { error: "must be a JSON object" })
  .refine((value) => Object.keys(value).length <= metadataKeysMax, {
    error: `must have at most ${metadataKeysMax} keys`,
  }).refine((value) => utf8Length(JSON.stringify(value)) <= metadataBytesMax, {
    error: `must be at most ${metadataBytesMax} bytes as JSON`,
  });

const user = z.unknown().optional();

/** The body of a deposit and of a charge. `user` is checked where users are. */
export const moneyBodySchema = z.strictObject({
  user,
  amount: amountSchema,
  metadata: metadataSchema.nullish(),
});
/** The body of a deposit and of a charge. */
export type MoneyBody = z.output<typeof moneyBodySchema>;

/** The body of a refund. Without an amount: all that is left of the entry. */
export const refundBodySchema = z.strictObject({
  user,
  activityId: z.string().regex(/^act_[0-9A-HJKMNP-TV-Z]{26}$/, { error: "is no activity's id" }),
  amount: amountSchema.optional(),
  metadata: metadataSchema.nullish(),
});
/** The body of a refund. */
export type RefundBody = z.output<typeof refundBodySchema>;
