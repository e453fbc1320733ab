import { z } from "zod";
import { isObject, type JsonObject } from "./json.ts";
import {
  idempotencyKeyCharsMax,
  pageSizeDefault,
  pageSizeMax,
  userIdCharsMax,
  userIdUnitsMax,
} from "./limits.ts";

// What bodies, answers and events are made of, each with its unit: the words of the API document.

/** An exact decimal in currency units, of any size. */
export const decimal = z.string().regex(/^-?\d+(\.\d{1,9})?$/).meta({
  description: "An exact decimal in currency units.",
});

/**
 * For a moment in the document: the format says it, and the pattern of every date is a page long.
 */
export const withoutPattern = ({ jsonSchema }: { jsonSchema: { pattern?: string } }): void => {
  delete jsonSchema.pattern;
};

/** A moment, in UTC. */
export const time = z.iso.datetime().meta({
  description: "ISO 8601, in UTC, to the millisecond.",
  override: withoutPattern,
});

/** A project's currency. */
export const currency = z.string().regex(/^[a-z]{3}$/).meta({
  description: "The project's currency: ISO 4217, in lower case.",
});

/** An id that we made: its kind, and a ULID. */
export const idOf = (kind: string, what: string) =>
  z.string().regex(new RegExp(`^${kind}_[0-9A-Z]+$`)).meta({ description: what });

/** An end user as the caller names them, as answers show it. */
export const userId = z.string().meta({
  description: "The end user, by the caller's own stable and pseudonymous id.",
});

/** The `user` of a body, as it is described; `checkUserId` judges it. */
export const userField = z.unknown().optional().meta({
  description: "The end user: a stable, pseudonymous id of your own. May be left out where the " +
    "header `X-Service-User` or the key's default names one.",
  override: {
    type: ["string", "null"],
    minLength: 1,
    maxLength: userIdCharsMax,
    pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
  },
});

/** An end user that a setting names, as it is described; `checkUserId` judges it. */
export const userIdSetting = z.string().min(1).max(userIdUnitsMax).meta({
  override: ({ jsonSchema }: { jsonSchema: { maxLength?: number } }) =>
    void (jsonSchema.maxLength = userIdCharsMax),
});

/** What a caller gave us to keep, as it was. */
export const metadata = z.custom<JsonObject>(isObject).meta({
  description: "The caller's own references, as they were given.",
  override: { type: "object" },
});

/** Where the next page starts. */
export const nextCursor = z.string().nullable().meta({
  description: "Give it as `cursor` for the next page; null at the end.",
});

/** Where a page starts. */
export const cursor = z.string().min(1).optional().meta({
  description: "The `nextCursor` of the page before.",
});

/** The query of a list: how many, and from where on. */
export const pageQuery = z.object({
  limit: z.int().min(1).max(pageSizeMax).default(pageSizeDefault).meta({
    description: "Most entries on the page.",
  }),
  cursor,
});

/** The header that makes a repeated request one operation. */
export const idempotencyHeader = z.object({
  "Idempotency-Key": z.string().regex(new RegExp(`^[\\x21-\\x7e]{1,${idempotencyKeyCharsMax}}$`))
    .optional().meta({
      description: "Names this operation: the same request again gets the first answer again, " +
        "with `Idempotent-Replayed: true`. Strongly recommended.",
      example: "order-1042",
      param: { id: "IdempotencyKey" },
    }),
});

/** The header of an error that says when to try again. */
export const retryAfterHeader = z.object({
  "Retry-After": z.string().meta({ description: "When to try again: seconds, or a date." }),
});

/** The header of an answer that was given before. */
export const replayedHeader = z.object({
  "Idempotent-Replayed": z.literal("true").optional().meta({
    description: "The first answer to this `Idempotency-Key`, given again.",
    header: { id: "IdempotentReplayed" },
  }),
});
