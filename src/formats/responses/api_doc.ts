import { type ResponseDoc, responseDocs } from "../../base/endpoint_doc.ts";
import { callHeaders, freeCallHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { responsesRequestSchema } from "./request.ts";
import { inputTokensSchema, responseEventSchema, responseSchema } from "./response_schema.ts";

const link = "https://farebox.example/t/8Fk2QwZ1nXb7Lr4pV";
const ask = { model: "gpt-4o-mini", input: "Hello", user: "ada" };

function responseSaying(text: string, more: Record<string, unknown>) {
  return {
    id: "resp_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    object: "response",
    created_at: 1_769_851_800,
    model: "gpt-4o-mini",
    status: "completed",
    output: [{
      id: "msg_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    }],
    ...more,
  };
}

function usageOf(input: number, output: number, cost: string) {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
    cost: Number(cost),
    cost_exact: cost,
  };
}

const answered = responseSaying("Hello! How can I help?", { usage: usageOf(8, 7, "0.0000108") });
const paywalled = responseSaying(
  `You have run out of credit. Top up here to continue: ${link}`,
  { paywall: { reason: "insufficient_funds", url: link }, usage: usageOf(0, 0, "0") },
);
const delta = {
  type: "response.output_text.delta",
  item_id: "msg_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  output_index: 0,
  content_index: 0,
  delta: "Hello",
  logprobs: [],
  sequence_number: 4,
};

const response: ResponseDoc = {
  description: "The response. When the user must top up or authorize, it is an assistant message " +
    "with the link.",
  content: {
    "application/json": { schema: responseSchema, examples: { answered, paywalled } },
    "text/event-stream": { schema: responseEventSchema, examples: { delta } },
  },
  headers: callHeaders,
};

/** The document of `POST /v1/responses`. */
export const responsesDoc: CallDoc = {
  operationId: "createResponse",
  summary: "Create a response",
  description:
    "Creates a response, as in OpenAI's API. It is held, charged and streamed as a chat completion " +
    "is; the last event has `usage` with the cost. A plain text that the balance cut short ends as " +
    "`completed`, with the link.\n\n" +
    "Tools that run at the provider and have no price are removed, and the header " +
    "`X-Service-Removed-Tools` names them. `max_tool_calls` bounds the calls of the others.\n\n" +
    "These get 400: `background: true`, `prompt` and `context_management`, unless the project's " +
    "`allowedFields` allows them, and ids of files and containers. Conversations get 404. Ids of " +
    "the paywall's messages may be sent back: they never reach the upstream.\n\n" +
    "Where the upstream keeps no responses, each turn is kept for 30 days, so that " +
    '`previous_response_id` works: not with `store: false`, nor with `keepResponses: "off"` of the ' +
    "project, whose responses say `store: false`.",
  body: {
    schema: responsesRequestSchema,
    examples: { whole: ask, streamed: { ...ask, stream: true } },
  },
  answers: { 200: response },
};

const eight = { eight: { object: "response.input_tokens", input_tokens: 8 } };
/** The document of `POST /v1/responses/input_tokens`. */
export const responsesCountDoc: CallDoc = {
  operationId: "createInputTokenCount",
  summary: "Count input tokens",
  description:
    "Free. The upstream counts; where it does not, the count is our own, and an estimate. " +
    "`previous_response_id` counts what came before, of the user's own responses.",
  body: { schema: responsesRequestSchema, examples: { hello: ask } },
  answers: { 200: responseDocs("The count.", inputTokensSchema, eight, freeCallHeaders) },
};
