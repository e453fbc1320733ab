import { z } from "zod";
import { idempotencyHeader, idOf, nextCursor, pageQuery, time, userId } from "../../base/fields.ts";
import { userIdCharsMax } from "../../base/limits.ts";
import {
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../../base/endpoint_doc.ts";
import { chargeDoc, contendedError, depositDoc, listActivitiesDoc, refundDoc } from "./api_doc.ts";
import { forgetBodySchema } from "../schema.ts";
import { userDetailSchema, userSchema } from "../users.ts";

const byOperator = { tag: "Users", access: "operator" } as const;

const projectPath = z.object({ projectId: idOf("pw", "The project.") });
const userPath = projectPath.extend({
  user: userId.meta({
    description:
      "The user, percent-encoded. For a user called `.` or `..`, which no URL path can " +
      "contain: `-` here, and the user as `?user=`.",
  }),
});
const userQuery = z.object({
  user: z.string().optional().meta({ description: "Only with `-` as the user in the path." }),
});

const badUser: ErrorDoc = {
  status: 400,
  code: "invalid_value",
  when: `The user is not 1 to ${userIdCharsMax} characters of well-formed Unicode without ` +
    "control characters, or the body names a different user.",
};
const unknown: ErrorDoc = {
  status: 404,
  code: "not_found",
  when: "The project does not exist, or has never had this user.",
};
const ids = [badUser, unknown];

const user = {
  user: "ada",
  currency: "usd",
  balance: "12.5",
  held: "0.002",
  available: "12.498",
  balanceFormatted: "$12.50",
  entries: 3,
  lastActivityId: "act_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  authorization: null,
};
const hold = {
  id: "req_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  amount: "0.002",
  expiresAt: "2026-01-31T09:31:00.000Z",
};

const listUsers: EndpointDoc = {
  ...byOperator,
  operationId: "listUsers",
  summary: "List users",
  description: "Ordered by id. In the shared mode, lists the users for whom someone " +
    "has decided whether a wallet may be charged.",
  path: projectPath,
  query: pageQuery.extend({
    prefix: z.string().optional().meta({ description: "Only users whose ids start with this." }),
  }),
  answers: {
    200: responseDocs("One page.", z.object({ users: z.array(userSchema), nextCursor }), {
      page: { users: [user], nextCursor: null },
    }),
  },
  errors: [unknown, {
    status: 400,
    code: "invalid_value",
    when: "`limit`, `cursor` or `prefix` is not valid.",
  }],
};

const getUser: EndpointDoc = {
  ...byOperator,
  operationId: "getUser",
  summary: "Retrieve a user",
  path: userPath,
  query: userQuery,
  answers: {
    200: responseDocs("The user's current state.", z.object({ user: userDetailSchema }), {
      holding: { user: { ...user, holds: [hold] } },
    }),
  },
  errors: ids,
};

const forgettingSchema = z.object({
  status: z.enum(["done", "running", "waiting"]).meta({
    description:
      "`waiting`: until something under way completes, such as a delivery that is being retried.",
  }),
  pseudonym: z.string().meta({ description: "The random name that replaces the user's id." }),
  erased: z.record(z.string(), z.int()).meta({
    description: "How many records that named the user have been erased, by kind.",
  }),
  archivedUntil: time.nullable().meta({
    description: "Sealed files with entries from before that time may still name the user: " +
      "`deno task farebox archive erase` replaces the name there. Null where there are none.",
  }),
}).meta({ id: "Forgetting" });
const pseudonym = "forgotten_4x7QaTz0pWm2VbKc9Ld1Re";

const forgetUser: EndpointDoc = {
  ...byOperator,
  operationId: "forgetUser",
  summary: "Erase a user",
  description: "Erases the user's id and everything they provided from all stored data. " +
    "Amounts, kinds and times of entries stay, under a random name. Once started, the erasure " +
    "continues by itself, also after a crash; repeat the call to see its progress. It cannot be undone.",
  path: userPath,
  query: userQuery,
  body: { schema: forgetBodySchema, examples: { paidOut: {}, forfeited: { forfeit: true } } },
  answers: {
    200: responseDocs("No stored record names the user any more.", forgettingSchema, {
      done: { status: "done", pseudonym, erased: { entries: 3, events: 7 }, archivedUntil: null },
    }),
    202: responseDocs("The erasure has started and continues by itself.", forgettingSchema, {
      waiting: { status: "waiting", pseudonym, erased: { entries: 3 }, archivedUntil: null },
    }),
  },
  errors: [
    ...ids,
    { status: 400, code: "money_held", when: "Calls of the user are still running." },
    {
      status: 400,
      code: "balance_not_zero",
      when: "The user has a balance, and `forfeit` was not set.",
    },
    {
      status: 400,
      code: "deliveries_pending",
      when: "Deliveries of the user's events are still pending.",
    },
    { status: 400, code: "user_has_keys", when: "An active API key names the user." },
    { status: 400, code: "user_connected", when: "In the shared mode: a wallet is connected." },
    contendedError,
  ],
};

/** Documents a public operation for the operator, with the user in the path. */
function forUser(operation: EndpointDoc, operationId: string): EndpointDoc {
  const { headers: _headers, errors = [], query: _query, ...rest } = operation;
  const own = errors.filter(({ code }) => code !== "user_required" && code !== "user_not_allowed");
  return {
    ...rest,
    ...byOperator,
    operationId,
    variantOf: operation.operationId,
    summary: `${rest.summary}, as the operator`,
    path: userPath,
    query: userQuery,
    errors: [...own, badUser, unknown],
  };
}

const moving = (operation: EndpointDoc, operationId: string): EndpointDoc => ({
  ...forUser(operation, operationId),
  headers: idempotencyHeader,
});

const address = "/v1/admin/projects/:projectId/users";

/** The API documentation of the operator's endpoints for a project's users. */
export const userApiDoc: EndpointDocs = {
  [address]: { GET: listUsers },
  [`${address}/:user`]: { GET: getUser },
  [`${address}/:user/activities`]: {
    GET: {
      ...forUser(listActivitiesDoc, "listUserActivities"),
      query: userQuery.extend(pageQuery.shape),
    },
  },
  [`${address}/:user/deposit`]: { POST: moving(depositDoc, "depositForUser") },
  [`${address}/:user/charge`]: { POST: moving(chargeDoc, "chargeUser") },
  [`${address}/:user/refund`]: { POST: moving(refundDoc, "refundUser") },
  [`${address}/:user/forget`]: { POST: forgetUser },
};
