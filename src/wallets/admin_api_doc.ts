import { z } from "zod";
import {
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../base/endpoint_doc.ts";
import { idOf, userId } from "../base/fields.ts";
import { joinBodySchema } from "./join_schema.ts";
import { joinSchema, walletSchema } from "./wallet_view.ts";

const byOperator = { tag: "Users", access: "operator" } as const;
const walletPath = z.object({ walletId: idOf("per", "The wallet.") });

const from = "per_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
const into = "per_01K9Z0C8Q4R7T2V5X8Z1B3D5F8";
const askedAt = "2026-01-31T09:30:00.000Z";
const reason = "Paid with receipt 2041 and has lost the only device; identity seen by support.";
const join = {
  from,
  into,
  status: "asked",
  askedAt,
  consents: { from: { by: "operator", at: askedAt, reason }, into: null },
};
const wallet = {
  id: into,
  balances: [{ currency: "usd", balance: "0", held: "0" }],
  users: [{ projectId: "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", user: "ada", status: "active" }],
  devices: 1,
  passkeys: 0,
  emails: 0,
  join: null,
  parts: [join],
};

const unknown: ErrorDoc = { status: 404, code: "not_found", when: "There is no such wallet." };
const joined: ErrorDoc = {
  status: 400,
  code: "wallet_joined",
  when: "One of the wallets is part of another one already.",
};
const contended: ErrorDoc = {
  status: 503,
  code: "contended",
  when: "The join has just changed: try again.",
};

const findWallets: EndpointDoc = {
  ...byOperator,
  operationId: "findWallets",
  summary: "Find the wallets of a user",
  description: "The wallets that pay or paid for a user in the shared mode, most recent first.",
  query: z.object({ projectId: idOf("pw", "The project."), user: userId }),
  answers: {
    200: responseDocs("The wallets.", z.object({ wallets: z.array(walletSchema) }), {
      one: { wallets: [wallet] },
    }),
  },
  errors: [
    { status: 400, code: "invalid_value", when: "`projectId` or `user` is missing or not valid." },
    { status: 400, code: "user_required", when: "`user` is missing." },
    { status: 404, code: "not_found", when: "The project does not exist." },
  ],
};

const getWallet: EndpointDoc = {
  ...byOperator,
  operationId: "getWallet",
  summary: "Retrieve a wallet",
  path: walletPath,
  answers: {
    200: responseDocs("The wallet.", z.object({ wallet: walletSchema }), { empty: { wallet } }),
  },
  errors: [unknown],
};

const joinWallet: EndpointDoc = {
  ...byOperator,
  operationId: "joinWallet",
  summary: "Join a wallet with another one",
  description: "For one person with two wallets. Each owner who can open their wallet confirms " +
    "there, at `/wallet`; for a wallet that nobody can open, the operator states a reason. Once " +
    "both sides have agreed, money, authorizations, devices, passkeys and e-mail addresses move. " +
    "What running calls hold follows when they end. No event tells of it.",
  path: walletPath,
  body: {
    schema: joinBodySchema,
    examples: { lost: { into, reasons: { from: reason } }, both: { into } },
  },
  answers: {
    200: responseDocs(
      "What is agreed so far; `status` is `joined` where nobody has to confirm.",
      z.object({ join: joinSchema }),
      { asked: { join } },
    ),
  },
  errors: [
    unknown,
    joined,
    contended,
    { status: 400, code: "invalid_value", when: "A field is not valid, or both are one wallet." },
    { status: 400, code: "join_pending", when: "The wallet is asked to join another one." },
    {
      status: 400,
      code: "reason_required",
      when: "Nobody can open one of the wallets, and no reason is stated.",
    },
    { status: 400, code: "owner_confirms", when: "A reason is stated, but an owner can confirm." },
  ],
};

const withdrawJoin: EndpointDoc = {
  ...byOperator,
  operationId: "withdrawWalletJoin",
  summary: "Withdraw a join",
  description: "Possible until both sides have agreed.",
  path: walletPath,
  answers: {
    200: responseDocs(
      "The wallets stay as they are.",
      z.object({ withdrawn: z.literal(true) }),
      { withdrawn: { withdrawn: true } },
    ),
  },
  errors: [unknown, joined, contended],
};

/** The API documentation of the operator's endpoints for wallets. They need `ADMIN_KEY`. */
export const walletAdminApiDoc: EndpointDocs = {
  "/v1/admin/wallets": { GET: findWallets },
  "/v1/admin/wallets/:walletId": { GET: getWallet },
  "/v1/admin/wallets/:walletId/join": { POST: joinWallet, DELETE: withdrawJoin },
};
