import { chunk, usage, usageChunk } from "./upstream.ts";
import type { Body } from "./world.ts";

/** The parts of an upstream's body, in order. */
export interface SentBody {
  type: string;
  /** Has begun, and has no text. */
  head: string;
  /** The text. */
  text: string;
  /** The usage and the end. */
  rest: string;
  /** An error, as an event or as a whole body; null where the type can hold none. */
  error: string | null;
  /** The code that the error has within a stream, where that is not `upstream_error`. */
  errorCode?: string;
  /** In place of the rest: more than we read of such a body; null where it passes on. */
  beyond: string | null;
}

/** The text of every upstream: five tokens by our own count. */
const text = "Hello there, my friend";
const json = "application/json";
const events = "text/event-stream";
const textOf = (value: unknown) => JSON.stringify(value);

/** More bytes than are read of a body or of an event of these tests. */
const large = "x".repeat(3_000);
/** The end of an object that is too large. */
export const largeEnd = `"pad":"${large}"}`;
const error = textOf({ error: { code: "overloaded", message: "busy" } });

/** The JSON of an object whose fields come in three parts. */
function jsonOf(head: Body, said: Body, rest: Body): SentBody {
  const part = (fields: Body) => textOf(fields).slice(1, -1);
  return {
    type: json,
    head: `{${part(head)},`,
    text: `${part(said)},`,
    rest: `${part(rest)}}`,
    error,
    beyond: null,
  };
}

/** An event as most upstreams send it, by its type where it has one. */
function frame(event: unknown): string {
  const { type } = Object(event);
  const data = typeof event === "string" ? event : textOf(event);
  return `${type ? `event: ${type}\n` : ""}data: ${data}\n\n`;
}
const frames = (...all: unknown[]) => all.map(frame).join("");
/** An event of many lines, which is never read as one. */
const largeEvent = `${"data: xxxx\n".repeat(600)}\n`;
const asEvents = { type: events, beyond: largeEvent };

const choice = { index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" };
const chatHead = { id: "chatcmpl-up", object: "chat.completion", created: 1, model: "test-model" };
export const chatJson = jsonOf(chatHead, { choices: [choice] }, { usage: usage(10, 6) });
export const largeChatJson = jsonOf(
  { ...chatHead, id: large },
  { choices: [choice] },
  { usage: usage(10, 6) },
);

export const chatEvents: SentBody = {
  ...asEvents,
  errorCode: "overloaded",
  head: frame(chunk({ role: "assistant", content: "" })),
  text: frame(chunk({ content: text })),
  rest: frames(chunk({}, "stop"), usageChunk(usage(10, 6)), "[DONE]"),
  error: frame({ error: { code: "overloaded", message: "busy" } }),
};
/** Reports 4 tokens before the text, which our own count exceeds by one. */
export const earlyChatEvents: SentBody = {
  ...chatEvents,
  text: frame(usageChunk(usage(10, 4))) + chatEvents.text,
};

const messageHead = { id: "msg_up", type: "message", role: "assistant", model: "test-model" };
const messageUsage = { input_tokens: 10, output_tokens: 6 };
const stopped = { stop_reason: "end_turn", stop_sequence: null };
export const messageJson: SentBody = {
  ...jsonOf(
    messageHead,
    { content: [{ type: "text", text }] },
    { ...stopped, usage: messageUsage },
  ),
  error: textOf({ type: "error", error: { type: "overloaded_error", message: "busy" } }),
};
export const messageEvents: SentBody = {
  ...asEvents,
  head: frames(
    { type: "message_start", message: { ...messageHead, content: [] } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ),
  text: frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  rest: frames(
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: stopped, usage: messageUsage },
    { type: "message_stop" },
  ),
  error: frame({ type: "error", error: { type: "overloaded_error", message: "busy" } }),
};

const responseHead = { id: "resp_up", object: "response", status: "completed" };
const part = { type: "output_text", text, annotations: [] };
const item = { id: "msg_up", type: "message", role: "assistant", content: [part] };
export const responseJson = jsonOf(responseHead, { output: [item] }, { usage: messageUsage });
const begun = { ...responseHead, status: "in_progress", output: [] };
const place = { item_id: "msg_up", output_index: 0, content_index: 0 };
export const responseEvents: SentBody = {
  ...asEvents,
  errorCode: "overloaded",
  head: frames(
    { type: "response.created", response: begun },
    {
      ...{ type: "response.output_item.added", output_index: 0 },
      item: { ...item, content: [] },
    },
  ),
  text: frame({ type: "response.output_text.delta", ...place, delta: text }),
  rest: frame({
    type: "response.completed",
    response: { ...responseHead, output: [item], usage: messageUsage },
  }),
  error: frame({ type: "error", code: "overloaded", message: "busy", param: null }),
};

export const embeddingsJson = jsonOf(
  { object: "list", model: "test-model" },
  { data: [{ object: "embedding", index: 0, embedding: [0.5] }] },
  { usage: { prompt_tokens: 10, total_tokens: 10 } },
);
export const imageJson = jsonOf(
  { created: 1 },
  { data: [{ b64_json: "AAAA" }] },
  { usage: { input_tokens: 10, output_tokens: 6, total_tokens: 16 } },
);
export const transcriptJson = jsonOf(
  { language: "en" },
  { text },
  { usage: { type: "duration", seconds: 10 } },
);
export const transcriptEvents: SentBody = {
  ...{ type: events, beyond: null },
  head: frame({ type: "transcript.text.delta", delta: "" }),
  text: frame({ type: "transcript.text.delta", delta: text }),
  rest: frame({ type: "transcript.text.done", text, usage: messageUsage }),
  error: frame({ type: "error", error: { code: "overloaded", message: "busy" } }),
};
export const sound: SentBody = {
  ...{ type: "audio/mpeg", error: null, beyond: null },
  ...{ head: `ID3${"a".repeat(500)}`, text: "b".repeat(500), rest: "c".repeat(500) },
};
