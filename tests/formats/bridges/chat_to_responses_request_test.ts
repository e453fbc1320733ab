import assert from "node:assert/strict";
import { chatToResponses } from "../../../src/formats/bridges/chat_to_responses/bridge.ts";
import { completionsToResponses } from "../../../src/formats/bridges/completions_to_responses.ts";
import { messagesToResponses } from "../../../src/formats/bridges/messages_to_responses.ts";
import type { Body } from "../../support/world.ts";
import { assertRefused, written } from "./support.ts";

const hi = [{ role: "user", content: "Hi" }];
const chat = (more: Body): Body => ({ model: "m", messages: hi, ...more });

const carried: [string, Body, Body][] = [
  ["a schema", {
    response_format: { type: "json_schema", json_schema: { name: "x", schema: {}, strict: true } },
    verbosity: "low",
  }, {
    text: {
      format: { type: "json_schema", name: "x", schema: {}, strict: true },
      verbosity: "low",
    },
  }],
  ["JSON", { response_format: { type: "json_object" } }, {
    text: { format: { type: "json_object" } },
  }],
  ["effort and log probabilities", {
    reasoning_effort: "low",
    logprobs: true,
    top_logprobs: 2,
  }, {
    reasoning: { effort: "low" },
    include: ["message.output_text.logprobs"],
    top_logprobs: 2,
  }],
  ["what asks for nothing", {
    n: 1,
    stop: [],
    seed: null,
    frequency_penalty: 0,
    logit_bias: {},
    store: true,
  }, {}],
  ["functions of the older form", { functions: [{ name: "f" }], function_call: { name: "f" } }, {
    tools: [{
      type: "function",
      name: "f",
      parameters: { type: "object", properties: {} },
      strict: false,
    }],
    tool_choice: { type: "function", name: "f" },
    parallel_tool_calls: false,
  }],
  ["custom tools", {
    tools: [{
      type: "custom",
      custom: {
        name: "c",
        format: { type: "grammar", grammar: { syntax: "lark", definition: "x" } },
      },
    }],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "required", tools: [{ type: "custom", custom: { name: "c" } }] },
    },
  }, {
    tools: [{
      type: "custom",
      name: "c",
      format: { type: "grammar", syntax: "lark", definition: "x" },
    }],
    tool_choice: {
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "custom", name: "c" }],
    },
  }],
];
for (const [what, sent, expected] of carried) {
  Deno.test(`chat to responses: ${what} is carried`, () => {
    const { model: _model, input: _input, max_output_tokens: _max, store, ...rest } = written(
      chatToResponses,
      chat(sent),
    );
    assert.equal(store, false);
    assert.deepEqual(rest, expected);
  });
}

Deno.test("chat to responses: images, files, names, and calls with their results are input items", () => {
  const data = "data:image/png;base64,AAAA";
  const { input } = written(
    chatToResponses,
    chat({
      messages: [
        { role: "developer", content: [{ type: "text", text: "Be kind" }] },
        { role: "user", name: "ann", content: [{ type: "image_url", image_url: { url: data } }] },
        { role: "user", name: "bob", content: "Hi" },
        {
          role: "user",
          content: [{ type: "file", file: { filename: "a.pdf", file_data: data } }],
        },
        {
          role: "assistant",
          content: null,
          refusal: "No.",
          reasoning_content: "Hm.",
          tool_calls: [{ id: "c1", type: "custom", custom: { name: "c", input: "x" } }],
        },
        { role: "tool", tool_call_id: "c1", content: "ok" },
        { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
        { role: "function", name: "f", content: "ok" },
      ],
    }),
  );
  assert.deepEqual(input, [
    { role: "developer", content: [{ type: "input_text", text: "Be kind" }] },
    {
      role: "user",
      content: [
        { type: "input_text", text: "ann:" },
        { type: "input_image", image_url: data, detail: "auto" },
      ],
    },
    { role: "user", content: "bob: Hi" },
    { role: "user", content: [{ type: "input_file", filename: "a.pdf", file_data: data }] },
    { role: "assistant", content: "No." },
    { type: "custom_tool_call", call_id: "c1", name: "c", input: "x" },
    { type: "custom_tool_call_output", call_id: "c1", output: "ok" },
    { type: "function_call", call_id: "call_6", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "call_6", output: "ok" },
  ]);
});

const refused: [string, Body][] = [
  ["stop", { stop: ["x"] }],
  ["seed", { seed: 1 }],
  ["n", { n: 2 }],
  ["top_k", { top_k: 4 }],
  ["presence_penalty", { presence_penalty: 1 }],
  ["modalities", { modalities: ["text", "audio"] }],
  ["tools.0.type", { tools: [{ type: "web_search" }] }],
  ["response_format.type", { response_format: { type: "grammar" } }],
  ["messages.0.prefix", { messages: [{ role: "assistant", content: "x", prefix: true }] }],
  ["messages.0.content.0.type", {
    messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }],
  }],
];
for (const [param, body] of refused) {
  Deno.test(`chat to responses: ${JSON.stringify(body)} is 400`, () =>
    assertRefused(chatToResponses, chat(body), param));
}

for (
  const [param, body] of [
    ["stop_sequences", { stop_sequences: ["x"] }],
    ["top_k", { top_k: 4 }],
    ["messages.1.role", { messages: [...hi, { role: "assistant", content: "x" }] }],
  ] as const
) {
  Deno.test(`messages to responses: ${JSON.stringify(body)} is 400 by the caller's name`, () =>
    assertRefused(messagesToResponses, { ...chat(body), max_tokens: 5 }, param));
}

for (
  const [param, body] of [["stop", { stop: "x" }], ["prompt", { prompt: ["a", "b"] }]] as const
) {
  Deno.test(`completions to responses: ${JSON.stringify(body)} is 400 by the caller's name`, () =>
    assertRefused(completionsToResponses, { model: "m", prompt: "Hi", ...body }, param));
}
