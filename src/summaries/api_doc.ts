import { z } from "zod";
import { movementsApart } from "../base/entry_reasons.ts";
import { mapTokenNames } from "../base/token_classes.ts";
import { currency, decimal, idOf, time, userId, withoutPattern } from "../base/fields.ts";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";

const count = z.int().min(0);
const amount = (what: string) => decimal.meta({ description: what });

const totals = {
  requests: count.meta({
    description: "All requests to endpoints that have a price: `calls`, `refused` and `repeated` " +
      "ones.",
  }),
  calls: count.meta({
    description: "Requests that were sent to a model: those that failed, were canceled, or " +
      "completed. The error rate is `failed` of these.",
  }),
  failed: count.meta({
    description: "Calls that ended with an error; some were charged for what they had produced.",
  }),
  canceled: count.meta({ description: "Calls whose caller disconnected." }),
  refused: count.meta({
    description: "Requests that were not sent: for lack of money, by a limit, or because they " +
      "were wrong.",
  }),
  repeated: count.meta({
    description: "Requests that were answered with an earlier response: from the response cache, " +
      "or under their `Idempotency-Key`.",
  }),
  ...mapTokenNames(({ description }) => count.meta({ description })),
  cost: amount("What was charged for responses."),
  revenue: amount(
    "What was charged for use, less what was given back: `cost` and `charges`, less `givenBack`. " +
      "Of a model, without charges.",
  ),
  givenBack: amount("Refunds of responses and of charges for use."),
  upstreamCost: amount(
    "What responses cost by their providers' price lists, where that is known.",
  ),
  margin: amount("The revenue of those responses, less that."),
  shortfall: amount("What was due and could not be collected, less what is no longer due."),
  deposits: amount("What users paid. In hours of version 0.9, every deposit."),
  charges: amount("What was charged for use besides responses."),
  otherCharges: amount(
    "What else was charged, less its refunds: corrections, transfers and forfeited balances. It " +
      "is no revenue.",
  ),
  takenBack: amount(
    "Payments that went back to payers or their banks, less those that came back. In hours of " +
      "version 0.9 they are not told apart, and not in it.",
  ),
  trials: amount("Trial credits that were granted: gifts, and no revenue."),
  movements: z.record(z.string(), decimal).meta({
    description: "What else moved, by reason and direction, never negative: " +
      `${movementsApart.map(({ name }) => `\`${name}\``).join(", ")}.`,
  }),
};
const totalsSchema = z.object(totals).meta({ id: "Totals" });
const counted = z.array(z.object({
  reason: z.string().meta({ description: "A code." }),
  count,
}));

/** A project's summary. */
const summarySchema = z.object({
  currency,
  from: time,
  to: time,
  totals: totalsSchema,
  hours: z.array(z.object({ start: time, totals: totalsSchema })).meta({
    description: "Hours in which something happened, in order.",
  }),
  models: z.array(z.object({ model: z.string(), ...totals })).meta({
    description: "Every model that was requested, also where all its calls failed, by cost, " +
      "highest first; beyond 24 models of an hour, the rest is `other`.",
  }),
  refusals: counted.meta({ description: "Refused requests, by reason." }),
  failures: counted.meta({ description: "Failed calls, by code." }),
  refusedCharges: counted.meta({
    description: "Refused calls of `POST /v1/user/charge`, by reason: they are no requests.",
  }),
  unpriced: z.array(z.object({
    reason: z.string().meta({ description: "The model's name; beyond 24 of an hour, `other`." }),
    count,
  })).meta({ description: "Requests for models without a price, which got 404." }),
  targets: z.array(z.object({
    upstream: z.string().meta({ description: "Its name in the settings." }),
    model: z.string().meta({ description: "The model's name there." }),
    attempts: count,
    answers: count.meta({
      description: "Attempts that got an answer, also where it broke off later.",
    }),
    firstTokenMs: count.meta({
      description: "The average of those to the first event, or to the end of a whole response.",
    }),
    cost: amount("What was charged for its responses."),
    upstreamCost: amount("What its attempts are known to have cost, also those that failed."),
  })).meta({
    description: "Attempts by target of a route, the most first; beyond 24 of an hour, `other`.",
  }),
  topUsers: z.object({
    month: z.string().regex(/^\d{4}-\d\d$/).meta({ description: "The month of `to`, UTC." }),
    users: z.array(z.object({
      user: userId,
      requests: count,
      tokens: count,
      spent: amount("What responses and charges cost in that month."),
    })).meta({ description: "The 100 users who spent most, up to 15 s old." }),
  }),
  topSpenders: z.array(z.object({
    user: userId,
    spent: amount("What responses and charges cost from `from` to `to`: at least so much."),
    atMost: amount(
      "More is not possible; the same as `spent`, unless 100 others spent more in some hour or day.",
    ),
  })).meta({
    description: "The 100 users who spent most in the period, up to 15 s old: by hour for up to " +
      "two days, by whole days (UTC) for longer.",
  }),
});

const zero = {
  requests: 0,
  calls: 0,
  failed: 0,
  canceled: 0,
  refused: 0,
  repeated: 0,
  ...mapTokenNames(() => 0),
  cost: "0",
  revenue: "0",
  givenBack: "0",
  upstreamCost: "0",
  margin: "0",
  shortfall: "0",
  deposits: "0",
  charges: "0",
  otherCharges: "0",
  takenBack: "0",
  trials: "0",
  movements: Object.fromEntries(movementsApart.map(({ name }) => [name, "0"])),
};
const used = {
  ...zero,
  requests: 3,
  calls: 2,
  refused: 1,
  uncachedInput: 1624,
  output: 192,
  cost: "0.0007176",
  revenue: "0.0007176",
  upstreamCost: "0.000598",
  margin: "0.0001196",
};
const example = {
  currency: "usd",
  from: "2026-01-30T09:00:00.000Z",
  to: "2026-01-31T09:00:00.000Z",
  totals: used,
  hours: [{ start: "2026-01-31T08:00:00.000Z", totals: used }],
  models: [{ model: "gpt-4o-mini", ...used }],
  refusals: [{ reason: "insufficient_funds", count: 1 }],
  failures: [],
  refusedCharges: [],
  unpriced: [],
  targets: [{
    upstream: "main",
    model: "gpt-4o-mini",
    attempts: 2,
    answers: 2,
    firstTokenMs: 412,
    cost: "0.0007176",
    upstreamCost: "0.000598",
  }],
  topUsers: {
    month: "2026-01",
    users: [{ user: "ada", requests: 2, tokens: 1816, spent: "0.0007176" }],
  },
  topSpenders: [{ user: "ada", spent: "0.0007176", atMost: "0.0007176" }],
};

const moment = (what: string) =>
  z.union([
    z.iso.date().meta({ override: withoutPattern }),
    z.iso.datetime({ offset: true }).meta({ override: withoutPattern }),
  ]).optional().meta({
    description: `${what}: ISO 8601, such as \`2026-01-31\` or \`2026-01-31T08:00:00Z\`.`,
  });

const getSummary: EndpointDoc = {
  tag: "Operations",
  access: "operator",
  operationId: "getSummary",
  summary: "Retrieve a summary",
  description: "Sums are kept as money moves, so a long period costs no more than its hours. " +
    "Refusals and failures may appear up to 15 s late.",
  path: z.object({ projectId: idOf("pw", "The project.") }),
  query: z.object({
    from: moment("The first hour. Default: a day before `to`"),
    to: moment("The end, exclusive. Default: now"),
  }),
  answers: { 200: responseDocs("The summary.", summarySchema, { day: example }) },
  errors: [
    {
      status: 400,
      code: "invalid_value",
      when: "`from` or `to` is not a time, or they are too far apart.",
    },
    { status: 404, code: "not_found", when: "The project does not exist." },
  ],
};

/** The API documentation of summaries. */
export const summaryApiDoc: EndpointDocs = {
  "/v1/admin/projects/:projectId/summary": { GET: getSummary },
};
