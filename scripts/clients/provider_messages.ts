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
  input_tokens: 20,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 10,
  service_tier: "standard",
};

/** Answers `POST /messages` as Anthropic does. */
export function answerMessages(body: JsonObject): Response {
  if (typeof body.max_tokens !== "number") {
    throw new ProviderError(400, "max_tokens: Field required");
  }
  const messages = objectsOf(body.messages);
  requireValidBlocks(messages);
  const results = blocksOf(messages.at(-1)).filter(({ type }) => type === "tool_result");
  const prompts = messages.filter((message) =>
    message.role === "user" && !blocksOf(message).some(({ type }) => type === "tool_result")
  );
  const reply = replyTo({
    prompts: prompts.map(({ content }) => textOf(content)),
    toolResult: results.length > 0 ? results.map(({ content }) => textOf(content)).join(" ") : null,
    tools: objectsOf(body.tools).map(({ name }) => String(name)),
  });
  const message = messageOf(body, reply);
  return body.stream === true ? streamed(message, reply) : Response.json(message);
}

/**
 * Throws 400 as Anthropic does, unless no text is empty, and each result belongs to a call of the
 * message before.
 */
function requireValidBlocks(messages: readonly JsonObject[]): void {
  if (messages.length === 0) throw new ProviderError(400, "messages: at least one is required");
  messages.forEach((message, index) => {
    const calls = new Set(blocksOf(messages[index - 1]).map(({ id }) => id));
    for (const block of blocksOf(message)) {
      if (block.type === "text" && block.text === "") {
        throw new ProviderError(400, `messages.${index}: text content blocks must be non-empty`);
      }
      if (block.type === "tool_result" && !calls.has(block.tool_use_id)) {
        const text = `messages.${index}: unexpected tool_use_id: ${block.tool_use_id}`;
        throw new ProviderError(400, text);
      }
    }
  });
}

function blocksOf(message: JsonObject | undefined): JsonObject[] {
  return objectsOf(message?.content);
}

function messageOf({ model }: JsonObject, reply: Reply): JsonObject {
  const block: JsonObject = "text" in reply
    ? { type: "text", text: reply.text, citations: null }
    : { type: "tool_use", id: newId("toolu_"), name: reply.call.name, input: reply.call.arguments };
  return {
    id: newId("msg_"),
    type: "message",
    role: "assistant",
    model: model ?? null,
    content: [block],
    stop_reason: "text" in reply ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage,
  };
}

function streamed(message: JsonObject, reply: Reply): Response {
  const [block = {}] = objectsOf(message.content);
  const { stop_reason } = message;
  const empty = "text" in reply ? { ...block, text: "" } : { ...block, input: {} };
  const deltas: Json[] = "text" in reply
    ? piecesOf(reply.text).map((text) => ({ type: "text_delta", text }))
    : [{ type: "input_json_delta", partial_json: JSON.stringify(reply.call.arguments) }];
  const started = { ...usage, output_tokens: 1 };
  const events: JsonObject[] = [
    {
      type: "message_start",
      message: { ...message, content: [], stop_reason: null, usage: started },
    },
    { type: "content_block_start", index: 0, content_block: empty },
    { type: "ping" },
    ...deltas.map((delta) => ({ type: "content_block_delta", index: 0, delta })),
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: stop_reason ?? null, stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
    { type: "message_stop" },
  ];
  return eventStream(events.map((data) => ({ event: String(data.type), data })));
}
