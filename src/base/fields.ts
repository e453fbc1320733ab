import { z } from "zod";
import { isObject, type JsonObject } from "./json.ts";
import {
  idempotencyKeyCharsMax,
  pageSizeDefault,
  pageSizeMax,
  userIdCharsMax,
  userIdUnitsMax,
} from "./limits.ts";

// The fields that bodies, responses and events consist of, each with its unit, as the API document
// describes them.

/** An exact decimal in currency units, of any size. */
export const decimal = z.string().regex(/^-?\d+(\.\d{1,9})?$/).meta({
  description: "An exact decimal in currency units.",
});

/**
 * Omits the pattern of a time: the format states it, and the pattern of every date is a page long.
 */
export const withoutPattern = ({ jsonSchema }: { jsonSchema: { pattern?: string } }): void => {
  delete jsonSchema.pattern;
};

/** A time, in UTC. */
export const time = z.iso.datetime().meta({
  description: "ISO 8601, in UTC, to the millisecond.",
  override: withoutPattern,
});

/** A project's currency. */
export const currency = z.string().regex(/^[a-z]{3}$/).meta({
  description: "The project's currency: ISO 4217, in lower case.",
});

/** An id that Farebox generated: its kind, and a ULID. */
export const idOf = (kind: string, what: string) =>
  z.string().regex(new RegExp(`^${kind}_[0-9A-Z]+$`)).meta({ description: what });

/** An end user as the caller names them, in responses. */
export const userId = z.string().meta({
  description: "The end user, by the caller's own stable and pseudonymous id.",
});

/** The `user` of a body, for the documentation; `checkUserId` validates it. */
export const userField = z.unknown().optional().meta({
  description: "The end user: a stable, pseudonymous id of your own. May be omitted if the " +
    "header `X-Service-User` or the key's default names one.",
  override: {
    type: ["string", "null"],
    minLength: 1,
    maxLength: userIdCharsMax,
    pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
  },
});

/** An end user in a setting, for the documentation; `checkUserId` validates it. */
export const userIdSetting = z.string().min(1).max(userIdUnitsMax).meta({
  override: ({ jsonSchema }: { jsonSchema: { maxLength?: number } }) =>
    void (jsonSchema.maxLength = userIdCharsMax),
});

/** The caller's metadata, unchanged. */
export const metadata = z.custom<JsonObject>(isObject).meta({
  description: "The caller's own references, unchanged.",
  override: { type: "object" },
});

/** A model's name. It becomes a part of keys and URLs, which hold only well-formed Unicode. */
export const modelName = z.string().min(1).max(256).refine((name) => name.isWellFormed(), {
  error: "must be well-formed Unicode",
});

/** Where the next page starts. */
export const nextCursor = z.string().nullable().meta({
  description: "Pass it as `cursor` for the next page; null at the end.",
});

/** Where a page starts. */
export const cursor = z.string().min(1).optional().meta({
  description: "The `nextCursor` of the previous page.",
});

/** The query of a list: its page size and cursor. */
export const pageQuery = z.object({
  limit: z.int().min(1).max(pageSizeMax).default(pageSizeDefault).meta({
    description: "The most entries on the page.",
  }),
  cursor,
});

/** The header that makes repeated requests one operation. */
export const idempotencyHeader = z.object({
  "Idempotency-Key": z.string().regex(new RegExp(`^[\\x21-\\x7e]{1,${idempotencyKeyCharsMax}}$`))
    .optional().meta({
      description: "Identifies this operation: a repeated request gets the first response again, " +
        "with `Idempotent-Replayed: true`. Strongly recommended.",
      example: "order-1042",
      param: { id: "IdempotencyKey" },
    }),
});

/** The header of an error that tells when to retry. */
export const retryAfterHeader = z.object({
  "Retry-After": z.string().meta({ description: "When to retry: seconds, or a date." }),
});

/** The header of a replayed response. */
export const replayedHeader = z.object({
  "Idempotent-Replayed": z.literal("true").optional().meta({
    description: "This is the first response to this `Idempotency-Key`, replayed.",
    header: { id: "IdempotentReplayed" },
  }),
});
