import { helloStream, sse } from "../support/upstream.ts";
import type { World } from "../support/world.ts";
import type { Json } from "../../src/base/json.ts";
import type { Mutator } from "./mutate.ts";

const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
const messageUsage = { input_tokens: 5, output_tokens: 2 };
const content = [{ type: "text", text: "Hello" }];

const wholes: Readonly<Record<string, Json>> = {
  "/chat/completions": {
    id: "c1",
    object: "chat.completion",
    model: "test-model",
    choices: [{
      index: 0,
      message: { role: "assistant", content: "Hello", tool_calls: [] },
      finish_reason: "stop",
    }],
    usage,
  },
  "/completions": {
    object: "text_completion",
    choices: [{ index: 0, text: "Hello", logprobs: null, finish_reason: "stop" }],
    usage,
  },
  "/embeddings": { object: "list", data: [{ index: 0, embedding: [0.5] }], usage },
  "/responses": {
    id: "resp_1",
    object: "response",
    status: "completed",
    output: [{
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "Hello", annotations: [] }],
    }],
    usage: { ...messageUsage, total_tokens: 7 },
  },
  "/messages": { id: "m1", type: "message", role: "assistant", content, usage: messageUsage },
  "/messages/count_tokens": { input_tokens: 5 },
  "/responses/input_tokens": { object: "response.input_tokens", input_tokens: 5 },
  "/images/generations": { created: 1, data: [{ b64_json: "AAAA" }], usage: messageUsage },
  "/moderations": { id: "mod", results: [{ flagged: false }] },
  "/audio/transcriptions": { text: "Hi", usage: { type: "duration", seconds: 1 } },
  "/audio/translations": { text: "Hi" },
};

const messageEvents = [
  {
    type: "message_start",
    message: { id: "m1", role: "assistant", content: [], usage: messageUsage },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
];
const item = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "in_progress",
  content: [],
};
const part = { type: "output_text", text: "", annotations: [] };
const inItem = { item_id: "msg_1", output_index: 0, content_index: 0 };
const responseEvents = [
  { type: "response.created", response: { id: "resp_1", object: "response", output: [] } },
  { type: "response.output_item.added", output_index: 0, item },
  { type: "response.content_part.added", ...inItem, part },
  { type: "response.output_text.delta", ...inItem, delta: "Hello" },
  { type: "response.completed", response: wholes["/responses"] },
];
const completionEvents = [
  { object: "text_completion", choices: [{ index: 0, text: "Hello", finish_reason: null }] },
  { object: "text_completion", choices: [{ index: 0, text: "", finish_reason: "stop" }], usage },
];

const imageEvents = [
  {
    type: "image_generation.completed",
    b64_json: "AAAA",
    usage: { ...messageUsage, total_tokens: 7 },
  },
];
const transcriptEvents = [
  { type: "transcript.text.delta", delta: "Hi" },
  { type: "transcript.text.done", text: "Hi", usage: { ...messageUsage, total_tokens: 7 } },
];

const streams: Readonly<Record<string, readonly Json[]>> = {
  "/messages": messageEvents as Json[],
  "/responses": responseEvents as Json[],
  "/completions": completionEvents,
  "/images/generations": imageEvents,
  "/audio/transcriptions": transcriptEvents,
};

/** Has the upstream answer every endpoint in its own format, now and then with a spoiled answer. */
export function answerAll(world: World, mutator: () => Mutator, spoiled: number) {
  const answers = { areSpoiled: false };
  world.upstream.reply(({ url, body }) => {
    const path = new URL(url).pathname.replace(/^.*\/v1(?=\/)/, "");
    const spoils = mutator().chance(spoiled);
    answers.areSpoiled ||= spoils;
    const write = (value: Json) => spoils ? mutator().json(value) : JSON.stringify(value);
    if (path === "/audio/speech") {
      return new Response("ID3", { headers: { "content-type": "audio/mpeg" } });
    }
    if (body?.stream === true) {
      const events = streams[path];
      if (!events) return spoils ? sse([{ choices: [] }]) : helloStream();
      const frames = events.map((event) =>
        `event: ${Object(event).type ?? "message"}\ndata: ${write(event)}\n\n`
      );
      const headers = { "content-type": "text/event-stream" };
      return new Response(`${frames.join("")}data: [DONE]\n\n`, { headers });
    }
    const headers = { "content-type": "application/json" };
    return new Response(write(wholes[path] ?? {}), { headers });
  });
  return answers;
}
