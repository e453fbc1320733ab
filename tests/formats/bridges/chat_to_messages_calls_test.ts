import assert from "node:assert/strict";
import { chatToMessages } from "../../../src/formats/bridges/chat_to_messages/bridge.ts";
import type { Body } from "../../support/world.ts";
import { eventsOf, optionsOf, translated, wholeOf } from "./support.ts";

const said = { type: "text", text: "Hm." };
const use = (name: string, input: Body) => ({ type: "tool_use", id: `toolu_${name}`, name, input });
const message = (...content: unknown[]): Body => ({
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "m",
  content,
  stop_reason: "tool_use",
  usage: { input_tokens: 3, output_tokens: 5 },
});
const custom = { tools: [{ type: "custom", custom: { name: "sh" } }, { function: { name: "f" } }] };
const called = { id: "toolu_f", type: "function", function: { name: "f", arguments: '{"a":1}' } };
const ran = { id: "toolu_sh", type: "custom", custom: { name: "sh", input: 'say "hi"' } };

const cases: [string, Body, Body[], Body, string][] = [
  [
    "functions of the older form are called by `function_call`",
    { functions: [{ name: "f" }] },
    [said, use("f", { a: 1 })],
    { content: "Hm.", function_call: called.function },
    "function_call",
  ],
  [
    "the input of a custom tool is a text, beside calls of functions",
    custom,
    [use("sh", { input: 'say "hi"' }), use("f", { a: 1 })],
    { content: null, tool_calls: [ran, called] },
    "tool_calls",
  ],
  [
    "an input that is no text stays as it was written",
    custom,
    [use("sh", { command: "ls" })],
    {
      content: null,
      tool_calls: [{ ...ran, custom: { name: "sh", input: '{"command":"ls"}' } }],
    },
    "tool_calls",
  ],
];
for (const [what, sent, content, expected, reason] of cases) {
  const options = optionsOf({ model: "m", messages: [], ...sent });
  Deno.test(`chat to messages: ${what}, whole and streamed`, () => {
    const [choice] = wholeOf(chatToMessages, message(...content), options).choices;
    const { role: _, refusal: __, ...whole } = choice.message;
    assert.deepEqual([whole, choice.finish_reason], [expected, reason]);
    assert.deepEqual(streamed(message(...content), options), [expected, reason]);
  });
}

/** The message and the finish reason of a stream, as a client puts them together. */
function streamed(upstream: Body, options: ReturnType<typeof optionsOf>): unknown {
  const made: Body = { content: null };
  let reason: string | null = null;
  for (const { data } of translated(chatToMessages, eventsOf(upstream), options)) {
    if (data === "[DONE]") continue;
    for (const { delta, finish_reason } of JSON.parse(data).choices) {
      reason ??= finish_reason;
      if (delta.content) made.content = (made.content ?? "") + delta.content;
      if (delta.function_call) made.function_call = joined(made.function_call, delta.function_call);
      for (const { index, ...piece } of delta.tool_calls ?? []) {
        made.tool_calls ??= [];
        made.tool_calls[index] = joined(made.tool_calls[index], piece);
      }
    }
  }
  return [made, reason];
}

/** Texts are joined, and members of objects each on their own. */
function joined(before: Body | undefined, piece: Body): Body {
  const all: Body = { ...before };
  for (const [name, value] of Object.entries(piece)) {
    const known = all[name];
    if (typeof known === "string") all[name] = known + value;
    else all[name] = typeof value === "object" ? joined(known, value) : value;
  }
  return all;
}
