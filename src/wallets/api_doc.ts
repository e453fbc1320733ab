import { z } from "zod";
import { userField } from "../base/fields.ts";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { userErrors, userHeader, userQuery } from "../projects/end_user.ts";

const message = z.string().meta({ description: "A sentence to show to people." });

const connectedSchema = z.object({
  connected: z.literal(true),
  message,
  connectedUser: z.string().meta({
    description: "The wallet's owner; in the default mode, the user.",
  }),
});
const unconnectedSchema = z.object({
  connected: z.literal(false),
  url: z.string().meta({
    description: "Where the user authorizes charges. The link expires after a week.",
  }),
  message: z.string().meta({
    description: "The sentence to show to the user; it contains the link.",
  }),
});
/** Whether a user has allowed a project to charge them. */
export type ConnectionStatus =
  | z.output<typeof connectedSchema>
  | z.output<typeof unconnectedSchema>;

const disconnectedSchema = z.object({ disconnected: z.literal(true), message });
/** The response to the end of a user's authorization. */
export type DisconnectResult = z.output<typeof disconnectedSchema>;

/** The body that names the user whose authorization is to end. */
export const disconnectBodySchema = z.looseObject({ user: userField });

const common = {
  tag: "Authorization",
  access: "money",
  headers: userHeader,
  query: userQuery,
} as const;
const link = "https://farebox.example/authorize/eyJhbGciOi";

const connect: EndpointDoc = {
  ...common,
  operationId: "getConnection",
  summary: "Connect a user",
  description: "In the default mode every user is connected.",
  answers: {
    200: responseDocs(
      "Whether the user is connected, and if not, the link.",
      z.union([connectedSchema, unconnectedSchema]),
      {
        connected: {
          connected: true,
          message: "This app needs no authorization.",
          connectedUser: "ada",
        },
        common: {
          connected: false,
          url: link,
          message:
            "My app needs your permission to charge your wallet. Grant it here to continue: " +
            link,
        },
      },
    ),
  },
  errors: userErrors,
};

const disconnect: EndpointDoc = {
  ...common,
  operationId: "disconnect",
  summary: "Disconnect a user",
  description: "Repeating the call is not an error.",
  answers: {
    200: responseDocs("The project may not charge the wallet any more.", disconnectedSchema, {
      ended: { disconnected: true, message: "The app may no longer charge this user's wallet." },
    }),
  },
  errors: [...userErrors, {
    status: 400,
    code: "mode_conflict",
    when: "In the default mode users give no authorization, so there is none to end.",
  }],
};

/** The API documentation of the endpoints for a user's authorization. */
export const walletApiDoc: EndpointDocs = {
  "/v1/user/connect": { GET: connect },
  "/v1/user/disconnect": {
    GET: {
      ...disconnect,
      operationId: "disconnectByGet",
      summary: "Disconnect a user by GET",
    },
    POST: {
      ...disconnect,
      body: { schema: disconnectBodySchema, examples: { ada: { user: "ada" } }, optional: true },
    },
  },
};
