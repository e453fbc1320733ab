import assert from "node:assert/strict";
import { ApiError } from "../../src/base/errors.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { readCompletionRequest } from "../../src/formats/completions/request.ts";
import { readEmbeddingRequest } from "../../src/formats/embeddings/request.ts";
import { readImageRequest } from "../../src/formats/images/request.ts";
import { readSpeechRequest } from "../../src/formats/audio/speech_request.ts";
import { readTranscriptionRequest } from "../../src/formats/audio/transcription_request.ts";
import { readCountRequest, readMessagesRequest } from "../../src/formats/messages/request.ts";
import { moderationsFormat } from "../../src/formats/moderations/moderations_format.ts";
import { readResponsesRequest } from "../../src/formats/responses/request.ts";
import { chat, chatBody } from "../support/chat.ts";
import { createWorld } from "../support/world.ts";

type Read = (body: JsonObject, allowed: readonly string[]) => unknown;

const options = (allowed: readonly string[]) => ({
  bytes: 1,
  fields: { unknown: "pass" as const, allowed },
});
const sound = { name: "a", type: "audio/wav", bytes: new Uint8Array([1]) };

const formats: Record<string, { read: Read; body: JsonObject }> = {
  chat: {
    read: (body, allowed) => readChatRequest(body, options(allowed)),
    body: { model: "m", messages: [{ role: "user", content: "Hi" }] },
  },
  completions: {
    read: (body, allowed) => readCompletionRequest(body, options(allowed)),
    body: { model: "m", prompt: "Hi" },
  },
  responses: {
    read: (body, allowed) => readResponsesRequest(body, options(allowed)),
    body: { model: "m", input: "Hi" },
  },
  messages: {
    read: (body, allowed) => readMessagesRequest(body, options(allowed)),
    body: { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] },
  },
  count: {
    read: (body, allowed) => readCountRequest(body, options(allowed)),
    body: { model: "m", messages: [{ role: "user", content: "Hi" }] },
  },
  embeddings: {
    read: (body, allowed) => readEmbeddingRequest(body, options(allowed)),
    body: { model: "m", input: "Hi" },
  },
  images: {
    read: (body, allowed) => readImageRequest(body, options(allowed)),
    body: { model: "m", prompt: "Hi" },
  },
  speech: {
    read: (body, allowed) => readSpeechRequest(body, options(allowed)),
    body: { model: "m", input: "Hi" },
  },
  transcriptions: {
    read: (body, allowed) => readTranscriptionRequest(body, { ...options(allowed), file: sound }),
    body: { model: "m" },
  },
  moderations: {
    read: (body, allowed) => moderationsFormat.readRequest(body, options(allowed).fields),
    body: { input: "Hi" },
  },
};

function refusalOf(work: () => unknown): ApiError | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Fields of any request, also where unknown ones pass: the place, and the name that opens it. */
const anywhere: readonly [JsonObject, string, string][] = [
  [{ file_id: "file-1" }, "file_id", "file_id"],
  [{ file_ids: ["file-1"] }, "file_ids", "file_ids"],
  [{ fileId: "file-1" }, "fileId", "fileId"],
  [{ container_id: "c" }, "container_id", "container_id"],
  [{ vector_store_ids: ["vs_1"] }, "vector_store_ids", "vector_store_ids"],
  [{ thread_id: "t" }, "thread_id", "thread_id"],
  [{ assistant_id: "a" }, "assistant_id", "assistant_id"],
  [{ agent_id: "a" }, "agent_id", "agent_id"],
  [{ batch_id: "b" }, "batch_id", "batch_id"],
  [{ cached_content: "c" }, "cached_content", "cached_content"],
  [{ google: { cachedContent: "c" } }, "google.cachedContent", "cachedContent"],
  [{ extra_body: { a: [{ file_id: 7 }] } }, "extra_body.a.0.file_id", "file_id"],
  [{ mask: { file_id: "f" } }, "mask.file_id", "file_id"],
  [{ images: [{ file_id: "f" }] }, "images.0.file_id", "file_id"],
  [{ memory_store_ids: ["m"] }, "memory_store_ids", "memory_store_ids"],
  [{ connector_id: "c" }, "connector_id", "connector_id"],
  [{ source: { uri: "gs://bucket/a.pdf" } }, "source.uri", "file_uri"],
];

for (const [name, { read, body }] of Object.entries(formats)) {
  Deno.test(`stored things: ${name} refuses what names one in any field, unless it is allowed`, () => {
    assert.equal(refusalOf(() => read(body, [])), null);
    for (const [fields, param, opens] of anywhere) {
      const refused = refusalOf(() => read({ ...body, ...fields }, []));
      assert.deepEqual([refused?.status, refused?.param], [400, param], JSON.stringify(fields));
      assert.ok(refused?.message.includes(`'${opens}'`), refused?.message);
      assert.equal(refusalOf(() => read({ ...body, ...fields }, [opens])), null);
    }
    for (const metadata of [{ file_id: "mine" }, { thread_id: "mine" }]) {
      assert.equal(refusalOf(() => read({ ...body, metadata }, [])), null);
    }
  });
}

const said = (...content: JsonObject[]) => ({ messages: [{ role: "user", content }] });
const asked = (...tools: JsonObject[]) => ({ tools });
const schema = { type: "object", properties: { file_id: { type: "string", default: "x" } } };

/** Places that only one format has. */
const placed: readonly [string, JsonObject, string | null, string?][] = [
  ["chat", said({ type: "file", file: { file_id: "f" } }), "messages.0.content.0.file.file_id"],
  [
    "chat",
    said({ type: "image_url", image_url: { file_id: "f" } }),
    "messages.0.content.0.image_url.file_id",
  ],
  [
    "chat",
    said({ type: "file", file: { file_data: "gs://b/a" } }),
    "messages.0.content.0.file.file_data",
    "file_uri",
  ],
  [
    "chat",
    { messages: [{ role: "assistant", audio: { id: "a" } }] },
    "messages.0.audio.id",
    "audio.id",
  ],
  ["chat", asked({ type: "file_search", vector_store_ids: ["v"] }), "tools.0.vector_store_ids"],
  [
    "chat",
    { messages: [{ role: "user", content: "Hi", attachments: [{ file_id: "f" }] }] },
    "messages.0.attachments.0.file_id",
  ],
  [
    "messages",
    { messages: [{ role: "user", content: "Hi", file_ids: ["f"] }] },
    "messages.0.file_ids",
  ],
  ["responses", { input: [{ type: "input_image", file_id: "f" }] }, "input.0.file_id"],
  ["chat", { conversation: "c" }, "conversation"],
  ["chat", { previous_response_id: "r" }, "previous_response_id"],
  ["chat", { prompt: { id: "p" } }, "prompt.id", "prompt"],
  ["chat", asked({ type: "function", function: { name: "f", parameters: schema } }), null],
  ["chat", said({ type: "text", text: "file_id" }), null],
  [
    "messages",
    said({ type: "document", source: { type: "file", file_id: "f" } }),
    "messages.0.content",
  ],
  ["messages", said({ type: "container_upload", source: {}, file_id: "f" }), "messages.0.content"],
  ["messages", { container: "c" }, "container"],
  ["messages", { container: { id: "c" } }, "container.id", "container"],
  [
    "messages",
    { container: { skills: [{ type: "custom", skill_id: "s" }] } },
    "container.skills.0.skill_id",
    "skill_id",
  ],
  ["messages", { container: { skills: [{ type: "anthropic", skill_id: "pptx" }] } }, null],
  ["messages", said({ type: "tool_use", id: "t", name: "f", input: { file_id: "mine" } }), null],
  ["messages", said({ type: "code_execution_output", file_id: "f" }), null],
  ["messages", asked({ name: "f", input_schema: schema }), null],
  ["count", { container: "c" }, "container"],
  [
    "responses",
    { input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] },
    "input.0.content.file_id",
  ],
  [
    "responses",
    {
      input: [{
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_image", file_id: "f" }],
      }],
    },
    "input.0.output.file_id",
  ],
  [
    "moderations",
    { input: [{ type: "image_url", image_url: { file_id: "f" } }] },
    "input.0.image_url.file_id",
  ],
];

for (const [name, fields, param, opens] of placed) {
  Deno.test(`stored things: ${name} ${param ? `refuses ${param}` : "passes on"} of ${JSON.stringify(fields).slice(0, 90)}`, () => {
    const { read, body } = formats[name] ?? assert.fail();
    const sent = { ...body, ...fields };
    const refused = refusalOf(() => read(sent, []));
    assert.equal(refused?.param ?? null, param);
    const opener = opens ?? param?.split(".").at(-1) ?? "";
    const byName = opener === "content" ? "file_id" : opener;
    assert.equal(refusalOf(() => read(sent, [byName])), null);
  });
}

Deno.test("stored things: another's file never reaches the upstream of a chat", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const messages = [{ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }];
  const { status, body } = await chat(world, chatBody({ messages }));
  assert.deepEqual([status, body.error.param], [400, "messages.0.content.0.file.file_id"]);
  assert.equal(world.upstream.calls.length, 0);
});

for (const [name, { read, body }] of Object.entries(formats)) {
  Deno.test(`model names: ${name} refuses one that is no well-formed Unicode`, () => {
    const refused = refusalOf(() => read({ ...body, model: "a\ud800" }, []));
    assert.deepEqual([refused?.status, refused?.param], [400, "model"]);
    assert.equal(refusalOf(() => read({ ...body, model: "𝕏" }, [])), null);
  });
}
