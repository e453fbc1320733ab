import { z } from "zod";
import { userField } from "../base/fields.ts";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { userErrors, userHeader, userQuery } from "../projects/end_user.ts";

const message = z.string().meta({ description: "A sentence for people." });

const connectedSchema = z.object({
  connected: z.literal(true),
  message,
  connectedUser: z.string().meta({ description: "The wallet; in the default mode, the user." }),
});
const unconnectedSchema = z.object({
  connected: z.literal(false),
  url: z.string().meta({ description: "Where a person allows it. It ends in a week." }),
  message: z.string().meta({ description: "The sentence to show to the user; it holds the link." }),
});
/** Whether a user has allowed a project to charge them. */
export type ConnectionStatus =
  | z.output<typeof connectedSchema>
  | z.output<typeof unconnectedSchema>;

const disconnectedSchema = z.object({ disconnected: z.literal(true), message });
/** The end of what a user had allowed. */
export type DisconnectResult = z.output<typeof disconnectedSchema>;

/** Whose leave is to end. */
export const disconnectBodySchema = z.looseObject({ user: userField });

const asked = {
  tag: "Authorization",
  access: "money",
  headers: userHeader,
  query: userQuery,
} as const;
const link = "https://farebox.example/authorize/eyJhbGciOi";

const connect: EndpointDoc = {
  ...asked,
  operationId: "getConnection",
  summary: "Ask whether a user may be charged, or get the link",
  description: "In the default mode every user is connected.",
  answers: {
    200: responseDocs("Whether, or where.", z.union([connectedSchema, unconnectedSchema]), {
      connected: {
        connected: true,
        message: "This app needs no authorization.",
        connectedUser: "ada",
      },
      asked: {
        connected: false,
        url: link,
        message: "My app needs your permission to charge your wallet. Give it here to continue: " +
          link,
      },
    }),
  },
  errors: userErrors,
};

const disconnect: EndpointDoc = {
  ...asked,
  operationId: "disconnect",
  summary: "End a user's permission",
  description: "Again is no error.",
  answers: {
    200: responseDocs("The project may not charge the wallet.", disconnectedSchema, {
      ended: { disconnected: true, message: "The app may no longer charge this user's wallet." },
    }),
  },
  errors: [...userErrors, {
    status: 400,
    code: "mode_conflict",
    when: "In the default mode users give no permission, so there is none to end.",
  }],
};

/** The operations about a user's leave to be charged. */
export const walletApiDoc: EndpointDocs = {
  "/v1/user/connect": { GET: connect },
  "/v1/user/disconnect": {
    GET: {
      ...disconnect,
      operationId: "disconnectByGet",
      summary: "End a user's permission, for tools that can only GET",
    },
    POST: {
      ...disconnect,
      body: { schema: disconnectBodySchema, examples: { ada: { user: "ada" } }, optional: true },
    },
  },
};
