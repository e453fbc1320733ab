import type { Json, JsonObject } from "../../src/base/json.ts";
import {
  eventStream,
  newId,
  objectsOf,
  piecesOf,
  ProviderError,
  type Reply,
  replyTo,
  textOf,
} from "./model.ts";

const usage = {
  prompt_tokens: 20,
  completion_tokens: 10,
  total_tokens: 30,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
};

/** Answers `POST /chat/completions`. */
export function answerChat(body: JsonObject): Response {
  const messages = objectsOf(body.messages);
  if (messages.length === 0) throw new ProviderError(400, "'messages' is empty.", "messages");
  const last = messages.at(-1);
  const reply = replyTo({
    prompts: messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content)),
    toolResult: last?.role === "tool" ? textOf(last.content) : null,
    tools: objectsOf(body.tools).flatMap(({ function: made }) =>
      objectsOf([made ?? null]).map(({ name }) => String(name))
    ),
  });
  return body.stream === true ? streamed(body, reply) : whole(body, reply);
}

function headOf({ model }: JsonObject, object: string): JsonObject {
  const created = Math.floor(Date.now() / 1000);
  return { id: newId("chatcmpl-"), object, created, model: model ?? null };
}

function toolCallOf(reply: Reply): JsonObject | null {
  if (!("call" in reply)) return null;
  const { name, arguments: given } = reply.call;
  return {
    id: newId("call_"),
    type: "function",
    function: { name, arguments: JSON.stringify(given) },
  };
}

function whole(body: JsonObject, reply: Reply): Response {
  const call = toolCallOf(reply);
  const message: JsonObject = {
    role: "assistant",
    content: "text" in reply ? reply.text : null,
    refusal: null,
    annotations: [],
    ...(call ? { tool_calls: [call] } : {}),
  };
  const finish_reason = call ? "tool_calls" : "stop";
  const choices = [{ index: 0, message, logprobs: null, finish_reason }];
  return Response.json({ ...headOf(body, "chat.completion"), choices, usage });
}

function streamed(body: JsonObject, reply: Reply): Response {
  const head = headOf(body, "chat.completion.chunk");
  const chunk = (delta: JsonObject, finish_reason: string | null = null): Json => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
  const call = toolCallOf(reply);
  const texts = "text" in reply ? piecesOf(reply.text) : [];
  const chunks: Json[] = [
    chunk({ role: "assistant", content: call ? null : "" }),
    ...texts.map((content) => chunk({ content })),
    ...(call ? [chunk({ tool_calls: [{ index: 0, ...call }] })] : []),
    chunk({}, call ? "tool_calls" : "stop"),
    { ...head, choices: [], usage },
    "[DONE]",
  ];
  return eventStream(chunks.map((data) => ({ data })));
}
