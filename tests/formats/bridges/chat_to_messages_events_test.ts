import assert from "node:assert/strict";
import fc from "fast-check";
import { chatToMessages } from "../../../src/formats/bridges/chat_to_messages/bridge.ts";
import { always, anyText, jsonText } from "../../support/property.ts";
import { optionsOf, translated } from "./support.ts";

const anyEvent = fc.oneof(
  jsonText,
  anyText,
  fc.record({
    type: fc.constantFrom(
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
      "ping",
    ),
    index: fc.oneof(fc.nat(2), fc.jsonValue()),
    message: fc.oneof(fc.record({ usage: fc.jsonValue(), model: fc.jsonValue() }), fc.jsonValue()),
    content_block: fc.oneof(
      fc.record({
        type: fc.constantFrom("text", "tool_use", "thinking", "redacted_thinking", "new"),
        text: fc.oneof(anyText, fc.jsonValue()),
        input: fc.jsonValue(),
      }, { requiredKeys: ["type"] }),
      fc.jsonValue(),
    ),
    delta: fc.oneof(
      fc.record({
        type: fc.constantFrom(
          "text_delta",
          "input_json_delta",
          "thinking_delta",
          "signature_delta",
        ),
        text: fc.oneof(anyText, fc.jsonValue()),
        partial_json: fc.oneof(anyText, fc.jsonValue()),
        thinking: anyText,
        signature: fc.oneof(anyText, fc.jsonValue()),
        stop_reason: fc.jsonValue(),
      }, { requiredKeys: [] }),
      fc.jsonValue(),
    ),
    usage: fc.jsonValue(),
  }, { requiredKeys: ["type"] }).map((event) => JSON.stringify(event)),
);
Deno.test("chat to messages: whatever a server sends becomes chunks, or nothing", () =>
  always(
    500,
    fc.property(fc.array(anyEvent, { maxLength: 8 }), (events) => {
      for (const { data } of translated(chatToMessages, events, optionsOf({}))) {
        if (data === "[DONE]") continue;
        const chunk = JSON.parse(data);
        if (!chunk.error && chunk.object !== "error" && !Array.isArray(chunk)) {
          assert.ok(Array.isArray(chunk.choices) || chunk.error_code);
        }
      }
    }),
  ));
