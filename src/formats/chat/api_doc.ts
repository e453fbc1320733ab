import type { ResponseDoc } from "../../base/endpoint_doc.ts";
import { callHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { chatSchema } from "./request.ts";
import { completionSchema, streamSchema } from "./response_schema.ts";

const link = "https://farebox.example/t/8Fk2QwZ1nXb7Lr4pV";
const ask = { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }], user: "ada" };
const head = {
  id: "chatcmpl-01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  created: 1_769_851_800,
  model: "gpt-4o-mini",
};

function completionSaying(content: string, more: Record<string, unknown>) {
  const message = { role: "assistant", content, refusal: null };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
  return { ...head, object: "chat.completion", choices, ...more };
}
const answered = completionSaying("Hello! How can I help?", {
  usage: {
    prompt_tokens: 8,
    completion_tokens: 7,
    total_tokens: 15,
    cost: 0.0000108,
    cost_exact: "0.0000108",
  },
});
const paywalled = completionSaying(
  `You have run out of credit. Top up here to continue: ${link}`,
  {
    paywall: { reason: "insufficient_funds", url: link },
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0, cost_exact: "0" },
  },
);
const chunk = {
  ...head,
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta: { content: "Hello" }, logprobs: null, finish_reason: null }],
};

const completion: ResponseDoc = {
  description: "The response. When the user must top up or authorize, it is an assistant message " +
    "with the link.",
  content: {
    "application/json": { schema: completionSchema, examples: { answered, paywalled } },
    "text/event-stream": { schema: streamSchema, examples: { chunk } },
  },
  headers: callHeaders,
};

/** The document of `POST /v1/chat/completions`. */
export const chatDoc: CallDoc = {
  operationId: "createChatCompletion",
  summary: "Create a chat completion",
  description:
    "Sends messages to a model, as in OpenAI's API. Farebox holds the most that the response can " +
    "cost before it calls the upstream, and charges the exact cost before the response ends.\n\n" +
    "With `stream`, the response is a stream of chunks, and the last is `[DONE]`. An error within " +
    "the stream, or after 2 seconds without a response, is an event with an error body.\n\n" +
    "Fields of OpenAI's reference, and harmless ones of other servers, are passed to the upstream " +
    'unchanged, except that numeric keys, such as `"1"`, come first in their object. Other fields ' +
    "get 400, unless the project's `allowedFields` or `unknownFields` allows them.\n\n" +
    "`Idempotency-Key` works for responses that are not streamed, for a day, and for each user " +
    "separately.",
  body: { schema: chatSchema, examples: { whole: ask, streamed: { ...ask, stream: true } } },
  answers: { 200: completion },
};
