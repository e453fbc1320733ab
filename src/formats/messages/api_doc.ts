import { type ResponseDoc, responseDocs } from "../../base/endpoint_doc.ts";
import { callHeaders, freeCallHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { countRequestSchema, messagesRequestSchema } from "./request.ts";
import {
  messageErrorSchema,
  messageEventSchema,
  messageSchema,
  tokenCountSchema,
} from "./response_schema.ts";

const link = "https://farebox.example/t/8Fk2QwZ1nXb7Lr4pV";
const messages = [{ role: "user", content: "Hello" }];
const request = { model: "claude-sonnet-5", max_tokens: 1_024, messages };
const head = {
  id: "msg_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-5",
};

function messageSaying(text: string, more: Record<string, unknown>) {
  const content = [{ type: "text", text }];
  return { ...head, content, stop_reason: "end_turn", stop_sequence: null, ...more };
}
const answered = messageSaying("Hello! How can I help?", {
  usage: {
    input_tokens: 8,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 7,
    cost: 0.000129,
    cost_exact: "0.000129",
  },
});
const paywalled = messageSaying(
  `You have run out of credit. Top up here to continue: ${link}`,
  {
    paywall: { reason: "insufficient_funds", url: link },
    usage: { input_tokens: 0, output_tokens: 0, cost: 0, cost_exact: "0" },
  },
);
const delta = {
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text: "Hello" },
};

const message: ResponseDoc = {
  description: "The message. When the user must top up or authorize, its text has the link.",
  content: {
    "application/json": { schema: messageSchema, examples: { answered, paywalled } },
    "text/event-stream": { schema: messageEventSchema, examples: { delta } },
  },
  headers: callHeaders,
};

/** The document of `POST /v1/messages`. */
export const messagesDoc: CallDoc = {
  operationId: "createMessage",
  summary: "Create a message",
  description:
    "Creates a message, as in Anthropic's API: for its SDKs and Claude Code. The key is sent as " +
    "`x-api-key` or as a bearer. The user is named by `X-Service-User`, by the path or by the key; " +
    "`metadata.user_id` is not used. `anthropic-version` and `anthropic-beta` are passed on.\n\n" +
    "A balance that cannot pay for `max_tokens` lowers it, and the budget of thinking with it. A " +
    "text that is cut by that ends with the link, and its stop reason is `end_turn`.\n\n" +
    "Tools that run at the provider and have no price are removed, and the header " +
    "`X-Service-Removed-Tools` names them.",
  body: {
    schema: messagesRequestSchema,
    examples: { whole: request, streamed: { ...request, stream: true } },
  },
  errorSchema: messageErrorSchema,
  answers: { 200: message },
};

const eight = { eight: { input_tokens: 8 } };
/** The document of `POST /v1/messages/count_tokens`. */
export const messagesCountDoc: CallDoc = {
  operationId: "createTokenCount",
  summary: "Count message tokens",
  description:
    "Free. The upstream counts; where it does not, the count is our own, and an estimate.",
  body: { schema: countRequestSchema, examples: { hello: { model: request.model, messages } } },
  errorSchema: messageErrorSchema,
  answers: { 200: responseDocs("The count.", tokenCountSchema, eight, freeCallHeaders) },
};
