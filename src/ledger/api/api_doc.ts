import { keyBudgetReached } from "../../projects/key_budget.ts";
import { mapTokenFields } from "../../base/token_classes.ts";
import { z } from "zod";
import { idempotencyHeader, pageQuery, replayedHeader } from "../../base/fields.ts";
import {
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../../base/endpoint_doc.ts";
import { userErrors, userHeader, userQuery } from "../../projects/end_user.ts";
import { chargeBodySchema, depositBodySchema, refundBodySchema } from "../schema.ts";
import {
  activitiesSchema,
  balanceSchema,
  chargedSchema,
  depositedSchema,
  refundedSchema,
  refusedSchema,
  topUpLinkSchema,
} from "./view.ts";

const activityId = "act_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
const linked = "https://farebox.example/t/8Fk2QwZ1nXb7Lr4pV";
const balance = { balance: "12.5", held: "0", available: "12.5", balanceFormatted: "$12.50" };
const booked = { success: true, activityId, user: "ada", currency: "usd" };
const usage = {
  model: "gpt-4o-mini",
  requestId: "req_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  source: "provider",
  ...mapTokenFields(() => 0),
  uncachedInputTokens: 812,
  outputTokens: 96,
  price: { input: "0.3", output: "1.2" },
};
const activity = {
  id: activityId,
  kind: "usage",
  reason: "usage",
  actor: { type: "key", id: "key_01K9Z0C8Q4R7T2V5X8Z1B3D5F7" },
  user: "ada",
  amount: "0.0003588",
  delta: "-0.0003588",
  currency: "usd",
  balanceAfter: "12.4996412",
  shortfall: "0",
  createdAt: "2026-01-31T09:30:00.000Z",
  idempotencyKey: null,
  metadata: null,
  usage,
  refundedActivityId: null,
};

const archived: ErrorDoc = {
  status: 403,
  code: "project_archived",
  when: "The project is archived: it takes no new money and no new calls.",
};
const wrongKey: ErrorDoc = {
  status: 400,
  code: "invalid_value",
  when: "`Idempotency-Key` is not 1 to 255 visible ASCII characters.",
};
const keyReused: ErrorDoc = {
  status: 422,
  code: "idempotency_key_reused",
  when: "The `Idempotency-Key` was already used with a different body.",
};
/** An error that every operation which moves money can return. */
export const contendedError: ErrorDoc = {
  status: 503,
  code: "account_contended",
  when: "Too many concurrent writes to the same account. Nothing was changed; try again.",
};
const moving = [...userErrors, archived, wrongKey, keyReused, contendedError];
const common = { tag: "Money", access: "money" } as const;
const headers = userHeader.extend(idempotencyHeader.shape);

/** Documents a deposit. */
export const depositDoc: EndpointDoc = {
  ...common,
  operationId: "deposit",
  summary: "Create a deposit",
  description:
    "Call it after your own checkout has succeeded. With an `Idempotency-Key`, a retry " +
    "never credits the user twice.",
  headers,
  body: {
    schema: depositBodySchema,
    examples: { paid: { user: "ada", amount: "12.50", metadata: { orderId: "order-1042" } } },
  },
  answers: {
    200: responseDocs("The deposit is in the balance.", depositedSchema, {
      booked: { ...booked, amount: "12.5", ...balance },
    }, replayedHeader),
  },
  errors: [...moving, {
    status: 400,
    code: "mode_conflict",
    when: "The project is in the shared mode, where users pay into their own wallets.",
  }],
};

/** Documents a charge. */
export const chargeDoc: EndpointDoc = {
  ...common,
  operationId: "charge",
  summary: "Create a charge",
  description:
    "For anything that is not metered by tokens. A user who cannot pay is not an error: " +
    "`success` is false, nothing has changed, and `message` contains the link to show.",
  headers,
  body: {
    schema: chargeBodySchema,
    examples: { report: { user: "ada", amount: "0.75", metadata: { report: "q3" } } },
  },
  answers: {
    200: responseDocs(
      "The charge was taken, or the user has to act first.",
      z.union([
        chargedSchema,
        refusedSchema,
      ]),
      {
        taken: { ...booked, amount: "0.75", ...balance, message: "The charge was taken." },
        refused: {
          success: false,
          reason: "insufficient_funds",
          message: `You have run out of credit. Top up here to continue: ${linked}`,
          url: linked,
          balance: "0.5",
          held: "0",
          available: "0.5",
          balanceFormatted: "$0.50",
        },
      },
      replayedHeader.extend({
        "Retry-After": z.string().optional().meta({
          description: "As `retryAfter`, where only running calls hold the balance.",
        }),
      }),
    ),
  },
  errors: [...moving, keyBudgetReached],
};

/** Documents a refund. */
export const refundDoc: EndpointDoc = {
  ...common,
  operationId: "refund",
  summary: "Create a refund",
  description:
    "Refunding a charge or usage credits the user. Refunding a deposit takes back what has " +
    "not been spent. All refunds together never exceed the activity.",
  headers,
  body: {
    schema: refundBodySchema,
    examples: { part: { activityId, amount: "0.25" }, whole: { activityId } },
  },
  answers: {
    200: responseDocs("The refund is recorded.", refundedSchema, {
      booked: {
        ...booked,
        amount: "0.25",
        ...balance,
        refundedActivityId: "act_01K9Z0C8Q4R7T2V5X8Z1B3D5F6",
        shortfall: "0",
      },
    }, replayedHeader),
  },
  errors: [
    ...moving,
    {
      status: 400,
      code: "not_refundable",
      when: "The activity is itself a refund, or reverses one.",
    },
    {
      status: 400,
      code: "archived",
      when: "The activity is in a sealed file, or from a time that is.",
    },
    {
      status: 400,
      code: "refund_exceeds_original",
      when: "The amount exceeds what is left to refund.",
    },
    {
      status: 400,
      code: "mode_conflict",
      when: "The activity is a person's payment into their own wallet.",
    },
    { status: 404, code: "not_found", when: "This user has no such activity." },
  ],
};

const getBalance: EndpointDoc = {
  ...common,
  operationId: "getBalance",
  summary: "Retrieve a balance",
  headers: userHeader,
  query: userQuery,
  answers: {
    200: responseDocs("The current balance; zero for an unknown user.", balanceSchema, {
      some: { user: "ada", currency: "usd", ...balance },
    }),
  },
  errors: userErrors,
};

const getTopUpLink: EndpointDoc = {
  ...common,
  operationId: "getTopUpLink",
  summary: "Create a top-up link",
  headers: userHeader,
  query: userQuery,
  answers: { 200: responseDocs("The link.", topUpLinkSchema, { hosted: { url: linked } }) },
  errors: userErrors,
};

/** Documents a page of a user's activities. */
export const listActivitiesDoc: EndpointDoc = {
  ...common,
  operationId: "listActivities",
  summary: "List activities",
  description:
    "Newest first, without gaps or repeats. `Accept: text/csv` returns the same page as " +
    "CSV (RFC 4180), with the cursor in the `X-Next-Cursor` header.",
  headers: userHeader,
  query: userQuery.extend(pageQuery.shape),
  answers: {
    200: {
      description: "One page.",
      content: {
        "application/json": {
          schema: activitiesSchema,
          examples: { page: { activities: [activity], nextCursor: null } },
        },
        "text/csv": {
          schema: z.string(),
          examples: {
            page: "id,createdAt,kind,user,amount,delta,currency,balanceAfter,shortfall," +
              "idempotencyKey,model,reason,actorType,actorId,metadata\r\n" +
              `${activityId},2026-01-31T09:30:00.000Z,deposit,ada,12.5,12.5,usd,12.5,0,` +
              "order-1042,,payment,key,key_01K9Z0C8Q4R7T2V5X8Z1B3D5F7,\r\n",
          },
        },
      },
      headers: z.object({
        "X-Next-Cursor": z.string().optional().meta({
          description: "CSV only: where the next page starts; absent on the last page.",
        }),
      }),
    },
  },
  errors: [...userErrors, {
    status: 400,
    code: "invalid_value",
    when: "`limit` or `cursor` is not valid.",
  }],
};

/** The API documentation of the endpoints for a user's money. */
export const ledgerApiDoc: EndpointDocs = {
  "/v1/user/balance": { GET: getBalance },
  "/v1/user/balance/topup": { GET: getTopUpLink },
  "/v1/user/balance/deposit": { POST: depositDoc },
  "/v1/user/charge": { POST: chargeDoc },
  "/v1/user/refund": { POST: refundDoc },
  "/v1/user/activities": { GET: listActivitiesDoc },
};
