import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../../src/base/errors.ts";
import { isObject, parseJson } from "../../../src/base/json.ts";
import { chatToMessages } from "../../../src/formats/bridges/chat_to_messages/bridge.ts";
import { chatToResponses } from "../../../src/formats/bridges/chat_to_responses/bridge.ts";
import { completionsToResponses } from "../../../src/formats/bridges/completions_to_responses.ts";
import { messagesToChat } from "../../../src/formats/bridges/messages_to_chat/bridge.ts";
import { messagesToResponses } from "../../../src/formats/bridges/messages_to_responses.ts";
import type { Bridge } from "../../../src/inference/format.ts";
import { always, spoiled } from "../../support/property.ts";
import { isOurBound } from "../../../src/upstreams/errors.ts";
import { chunk } from "../../support/upstream.ts";
import { chatDialect, optionsOf, requestOf, translated, written } from "./support.ts";

const schema = { type: "object", properties: { a: { type: "string" } } };
const png = "data:image/png;base64,aGk=";
const chatAsk = {
  model: "m",
  messages: [
    {
      role: "system",
      content: [{ type: "text", text: "A", cache_control: { type: "ephemeral" } }],
    },
    {
      role: "user",
      content: [{ type: "text", text: "B" }, { type: "image_url", image_url: { url: png } }],
    },
    {
      role: "assistant",
      content: "C",
      thinking_blocks: [{ type: "thinking", thinking: "t", signature: "s" }],
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
    },
    { role: "tool", tool_call_id: "a", content: "D" },
    {
      role: "user",
      content: [{ type: "file", file: { file_data: "data:application/pdf;base64,aGk=" } }],
    },
  ],
  tools: [{ type: "function", function: { name: "f", parameters: schema } }],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "x", schema } },
  stop: ["x"],
  temperature: 0.5,
  reasoning_effort: "low",
  thinking: { type: "disabled" },
};
const messagesAsk = {
  model: "m",
  max_tokens: 10,
  system: [{ type: "text", text: "A" }],
  messages: [
    {
      role: "user",
      content: [{ type: "text", text: "B" }, {
        type: "image",
        source: { type: "url", url: "https://x.test" },
      }],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "t", signature: "s" },
        { type: "tool_use", id: "a", name: "f", input: { a: 1 } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "a",
          content: [{ type: "text", text: "D" }],
          is_error: true,
        },
        {
          type: "document",
          source: { type: "base64", media_type: "application/pdf", data: "aGk=" },
        },
      ],
    },
    { role: "system", content: "E" },
  ],
  tools: [{ name: "f", input_schema: schema }],
  tool_choice: { type: "auto" },
  thinking: { type: "adaptive" },
  output_config: { effort: "low", format: { type: "json_schema", schema } },
  context_management: { edits: [{ type: "clear_thinking_20251015" }] },
  stop_sequences: ["x"],
};

const bridges: [string, Bridge, object][] = [
  ["chat to messages", chatToMessages, chatAsk],
  ["messages to chat", messagesToChat, messagesAsk],
  ["chat to responses", chatToResponses, { ...chatAsk, stop: null, thinking: null }],
  ["messages to responses", messagesToResponses, { ...messagesAsk, stop_sequences: [] }],
  ["completions to responses", completionsToResponses, { model: "m", prompt: "A", stop: null }],
];
for (const [what, bridge, body] of bridges) {
  Deno.test(`${what}: any body is written as JSON, or is 400 with a field`, () => {
    written(bridge, body);
    return always(
      1_000,
      fc.property(spoiled(body), (text) => {
        let sent: unknown;
        try {
          sent = parseJson(text);
        } catch {
          return;
        }
        if (!isObject(sent)) return;
        const before = JSON.stringify(sent);
        try {
          JSON.parse(bridge.writeBody(requestOf(sent), 100, chatDialect));
        } catch (error) {
          assert.ok(error instanceof ApiError, String(error));
          assert.equal(error.status, 400);
          assert.ok(error.param !== null && error.message.includes(error.param), error.message);
        }
        assert.equal(JSON.stringify(sent), before, "the caller's body is not changed");
      }),
    );
  });
}

Deno.test("bridges: numbers that no double holds stay as they were written", () => {
  const args = '{"id":12345678901234567890}';
  const call = { id: "a", type: "function", function: { name: "f", arguments: args } };
  const asked = {
    messages: [{ role: "assistant", tool_calls: [call] }, { role: "user", content: "x" }],
  };
  assert.ok(chatToMessages.writeBody(requestOf(asked), 1, chatDialect).includes(`"input":${args}`));
  const text =
    `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":${args}}]},{"role":"user","content":"x"}]}`;
  const sent = parseJson(text);
  const body = isObject(sent) ? sent : assert.fail();
  const made = JSON.parse(messagesToChat.writeBody(requestOf(body), 1, chatDialect));
  assert.equal(made.messages[0].tool_calls[0].function.arguments, args);
});

const endless: [string, Bridge, unknown, (text: string) => unknown][] = [
  [
    "a second call",
    messagesToChat,
    chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "" } }] }),
    (text) =>
      chunk({ tool_calls: [{ index: 1, id: "b", function: { name: "f", arguments: text } }] }),
  ],
  [
    "a signature",
    chatToMessages,
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
    (signature) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "signature_delta", signature },
    }),
  ],
];
for (const [what, bridge, start, piece] of endless) {
  Deno.test(`bridges: ${what} without an end is cut off, and not kept in memory`, () => {
    const parts = Array(10).fill(piece("x".repeat(1024 * 1024)));
    assert.throws(
      () => translated(bridge, [start, ...parts], optionsOf({})),
      (error) => isOurBound(error),
    );
  });
}
