import { z } from "zod";
import { idempotencyHeader, idOf, nextCursor, pageQuery, userId } from "../base/fields.ts";
import { userIdCharsMax } from "../base/limits.ts";
import {
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../base/endpoint_doc.ts";
import { chargeDoc, contendedError, depositDoc, listActivitiesDoc, refundDoc } from "./api_doc.ts";
import { forgetBodySchema } from "./schema.ts";
import { userDetailSchema, userSchema } from "./users.ts";

const byOperator = { tag: "Users", access: "operator" } as const;

const projectPath = z.object({ projectId: idOf("pw", "The project.") });
const userPath = projectPath.extend({
  user: userId.meta({
    description: "The user, percent-encoded. For one called `.` or `..`, which no address can " +
      "hold: `-`, and the user as `?user=`.",
  }),
});
const userQuery = z.object({
  user: z.string().optional().meta({ description: "Only where the path has `-` for the user." }),
});

const badUser: ErrorDoc = {
  status: 400,
  code: "invalid_value",
  when: `The user is not 1 to ${userIdCharsMax} characters of well-formed Unicode without ` +
    "control characters, or the body names another one.",
};
const unknown: ErrorDoc = {
  status: 404,
  code: "not_found",
  when: "There is no such project, or it never had this user.",
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
  summary: "List a project's users",
  description: "In order of their ids. In the shared mode these are the users for whom someone " +
    "has decided whether their wallet may be spent.",
  path: projectPath,
  query: pageQuery.extend({
    prefix: z.string().optional().meta({ description: "Only users whose ids begin so." }),
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
  summary: "Read a user",
  path: userPath,
  query: userQuery,
  answers: {
    200: responseDocs("The user as they stand now.", z.object({ user: userDetailSchema }), {
      holding: { user: { ...user, holds: [hold] } },
    }),
  },
  errors: ids,
};

const forgettingSchema = z.object({
  status: z.enum(["done", "running", "waiting"]).meta({
    description: "`waiting`: for something under way, such as a delivery that is tried again.",
  }),
  pseudonym: z.string().meta({ description: "The random name that stands for the user now." }),
  erased: z.record(z.string(), z.int()).meta({
    description: "Records that named the user so far, by what they are.",
  }),
}).meta({ id: "Forgetting" });
const pseudonym = "forgotten_4x7QaTz0pWm2VbKc9Ld1Re";

const forgetUser: EndpointDoc = {
  ...byOperator,
  operationId: "forgetUser",
  summary: "Forget a user",
  description: "Takes the user's id and all that they gave out of everything that is stored. " +
    "Amounts, kinds and times of money stay, under a random name. It goes on by itself once " +
    "begun, also after a crash; ask again to see how far it is. There is no way back.",
  path: userPath,
  query: userQuery,
  body: { schema: forgetBodySchema, examples: { paidOut: {}, forfeited: { forfeit: true } } },
  answers: {
    200: responseDocs("Nothing names the user any more.", forgettingSchema, {
      done: { status: "done", pseudonym, erased: { entries: 3, events: 7 } },
    }),
    202: responseDocs("It has begun, and goes on.", forgettingSchema, {
      waiting: { status: "waiting", pseudonym, erased: { entries: 3 } },
    }),
  },
  errors: [
    ...ids,
    { status: 400, code: "money_held", when: "Answers are running for the user." },
    { status: 400, code: "balance_not_zero", when: "Money is left, and not to be forfeited." },
    { status: 400, code: "deliveries_pending", when: "Deliveries of the user's events are." },
    { status: 400, code: "user_has_keys", when: "An API key that is in force names the user." },
    { status: 400, code: "user_connected", when: "In the shared mode: a wallet is connected." },
    contendedError,
  ],
};

/** One of the public operations, for the operator and the user of the address. */
function forUser(operation: EndpointDoc, operationId: string): EndpointDoc {
  const { headers: _headers, errors = [], query: _query, ...rest } = operation;
  const own = errors.filter(({ code }) => code !== "user_required" && code !== "user_not_allowed");
  return {
    ...rest,
    ...byOperator,
    operationId,
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

/** The operations of whoever has `ADMIN_KEY` on a project's users. */
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
