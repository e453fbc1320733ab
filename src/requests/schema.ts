import { z } from "zod";
import { idOf, nextCursor, time } from "../base/fields.ts";
import { moment } from "../base/moment.ts";
import { requestOutcomes } from "./record.ts";

const momentOf = (what: string) =>
  moment.optional().meta({ description: `${what}: ISO 8601; a date is its first moment in UTC.` });

const text = (most: number, what: string) =>
  z.string().min(1).max(most).optional().meta({ description: what });

/** The filters of a list of requests, as a query has them. */
export const requestFilterSchema = z.strictObject({
  id: text(128, "Our own id, or the caller's `X-Request-Id`."),
  user: text(128, "The end user."),
  model: text(256, "The model, as the request named it."),
  key: text(64, "The API key's id."),
  outcome: z.enum(requestOutcomes).optional().meta({
    description: "How it ended; `refused` requests were not sent to a model.",
  }),
  reason: text(64, "Why it failed or was refused: a code."),
  status: z.string().regex(/^[1-5]\d\d$/, { error: "must be a status such as 502" })
    .transform(Number).optional().meta({
      description: "The status of the response; 499 where the client disconnected.",
    }),
  from: momentOf("The earliest"),
  to: momentOf("The end, exclusive"),
});

/** The query of `GET …/requests`. */
export const requestQuerySchema = requestFilterSchema.extend({
  limit: z.string().regex(/^([1-9]\d{0,2}|1000)$/, { error: "must be from 1 to 1000" })
    .transform(Number).default(100).meta({
      description: "How many at most: 1 to 1000. Default: 100.",
    }),
  cursor: z.string().min(1).max(64).optional().meta({ description: "Where to continue." }),
});

const count = (what: string) => z.int().min(0).meta({ description: what });
const orNull = (what: string) => z.string().nullable().meta({ description: what });

/** A request as the API shows it. */
const requestViewSchema = z.object({
  id: idOf("req", "Our own id."),
  requestId: z.string().meta({ description: "The caller's `X-Request-Id`, or ours." }),
  createdAt: time,
  outcome: z.enum(requestOutcomes),
  status: z.int(),
  reason: orNull("Why it failed or was refused: a code."),
  endpoint: z.string().meta({ description: "The endpoint's format, such as `chat`." }),
  stream: z.boolean(),
  user: orNull("The end user, where the request named one."),
  model: orNull("The model, as the request named it."),
  key: idOf("key", "The API key."),
  latencyMs: count("Until the end of the response."),
  firstTokenMs: count("Until the first token, or the whole response.").nullable(),
  inputTokens: count("Tokens of the prompt."),
  cachedTokens: count("Those of them that the provider had cached."),
  outputTokens: count("Tokens of the response."),
  cost: z.string().meta({ description: "What was charged: an exact decimal." }),
  upstreamCost: orNull("What it cost by the provider's price list, where that is known."),
  upstream: orNull("The upstream that answered, where the request was routed."),
  attempts: count("How many targets were asked."),
  activityId: orNull("The entry in the ledger, where there is one."),
  count: count(
    "How many requests it stands for: after the tenth refusal of a user and reason in a minute, " +
      "or of the project in a second, the others are one row, with the values of the last. `user` " +
      "and `model` are null there where they differ.",
  ),
}).meta({ id: "Request" });

/** A page of requests. */
export const requestsSchema = z.object({
  requests: z.array(requestViewSchema),
  nextCursor,
  searchedTo: time.nullable().meta({
    description: "How far back this page has looked, where it found less than `limit` before it " +
      "had read as much as one page may; continue with `nextCursor`. Else null.",
  }),
});
