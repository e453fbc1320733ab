import assert from "node:assert/strict";
import { isObject, parseJson } from "../../../src/base/json.ts";
import { responsesToChat } from "../../../src/formats/bridges/responses_to_chat/bridge.ts";
import { assertGrowth } from "../../support/growth.ts";
import { bridgeRequest, chatRequest, plainDialect } from "../../support/responses_bridge.ts";

const user = (content: unknown) => ({ role: "user", content });
const fn = (name: string, more: object = {}) => ({ type: "function", name, ...more });
const chatFn = (name: string, more: object = {}) => ({
  type: "function",
  function: { name, ...more },
});
const inputOnly = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
};
const call = (call_id: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "f",
  arguments: "{}",
  ...more,
});
const output = (call_id: string, output: unknown = "done") => ({
  type: "function_call_output",
  call_id,
  output,
});
const chatCall = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const toolMessage = (tool_call_id: string, content: unknown = "done") => ({
  role: "tool",
  tool_call_id,
  content,
});
const own = (text: string, field = "reasoning_content") => ({
  type: "reasoning",
  id: "rs_1",
  summary: [],
  encrypted_content: `chat.${field}:${text}`,
});

const conversations: [string, object, unknown[]][] = [
  ["a text", { input: "Hi" }, [user("Hi")]],
  ["instructions lead as a system message", { instructions: "Be kind" }, [
    { role: "system", content: "Be kind" },
    user("Hi"),
  ]],
  ["every system and developer message joins the first", {
    instructions: "A",
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "B" }] },
      user("Hi"),
      { role: "system", content: "C" },
    ],
  }, [{ role: "system", content: "A\n\nB\n\nC" }, user("Hi")]],
  ["one text part is a text, several stay parts", {
    input: [
      user([{ type: "input_text", text: "one" }]),
      user([{ type: "input_text", text: "one" }, { type: "input_text", text: "two" }]),
    ],
  }, [user("one"), user([{ type: "text", text: "one" }, { type: "text", text: "two" }])]],
  ["images, sounds and files", {
    input: [user([
      { type: "input_image", image_url: "https://x.test/a.png", detail: "high" },
      { type: "input_image", image_url: "data:image/png;base64,AA", detail: "auto" },
      { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA" },
    ])],
  }, [user([
    { type: "image_url", image_url: { url: "https://x.test/a.png", detail: "high" } },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
    { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA" } },
  ])]],
  ["earlier answers and refusals are the assistant's text", {
    input: [
      user("a"),
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "b", annotations: [] }],
      },
      user("c"),
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
      user("d"),
    ],
  }, [
    user("a"),
    { role: "assistant", content: "b" },
    user("c"),
    { role: "assistant", content: "no" },
    user("d"),
  ]],
  ["several calls beside a text are one message, before their outputs", {
    input: [
      user("a"),
      { role: "assistant", content: "Let me look." },
      call("1"),
      call("2"),
      output("2"),
      output("1", [{ type: "input_text", text: "x" }, { type: "input_text", text: "y" }]),
    ],
  }, [
    user("a"),
    {
      role: "assistant",
      content: "Let me look.",
      tool_calls: [chatCall("1"), chatCall("2")],
    },
    toolMessage("2"),
    toolMessage("1", "x\ny"),
  ]],
  ["calls one after the other are messages of their own", {
    input: [user("a"), call("1"), output("1"), call("2"), output("2")],
  }, [
    user("a"),
    { role: "assistant", content: null, tool_calls: [chatCall("1")] },
    toolMessage("1"),
    { role: "assistant", content: null, tool_calls: [chatCall("2")] },
    toolMessage("2"),
  ]],
  ["an output follows its call, also when a message came between", {
    input: [user("a"), call("1"), user("b"), output("1")],
  }, [
    user("a"),
    { role: "assistant", content: null, tool_calls: [chatCall("1")] },
    toolMessage("1"),
    user("b"),
  ]],
  ["an output with an image is parts", {
    input: [call("1"), output("1", [{ type: "input_image", image_url: "data:x" }])],
  }, [
    { role: "assistant", content: null, tool_calls: [chatCall("1")] },
    toolMessage("1", [{ type: "image_url", image_url: { url: "data:x" } }]),
  ]],
  ["custom calls and calls in a group, by their names upstream", {
    tools: [
      { type: "custom", name: "patch" },
      { type: "namespace", name: "crm", description: "CRM", tools: [fn("find")] },
    ],
    input: [
      { type: "custom_tool_call", call_id: "1", name: "patch", input: 'a "b"' },
      call("2", { name: "find", namespace: "crm" }),
      call("3", { name: "gone", namespace: "old" }),
      { type: "custom_tool_call_output", call_id: "1", output: "ok" },
    ],
  }, [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        chatCall("1", "patch", '{"input":"a \\"b\\""}'),
        chatCall("2", "crm__find"),
        chatCall("3", "old__gone"),
      ],
    },
    toolMessage("1", "ok"),
  ]],
  ["our own reasoning of the current turn goes back by its own name", {
    input: [user("a"), own("old"), call("1"), output("1"), user("b"), own("new"), call("2")],
  }, [
    user("a"),
    { role: "assistant", content: null, tool_calls: [chatCall("1")] },
    toolMessage("1"),
    user("b"),
    {
      role: "assistant",
      content: null,
      reasoning_content: "new",
      tool_calls: [chatCall("2")],
    },
  ]],
  ["that of all turns, where the request asks for it", {
    reasoning: { context: "all_turns" },
    input: [user("a"), own("old", "reasoning"), { role: "assistant", content: "x" }, user("b")],
  }, [user("a"), { role: "assistant", content: "x", reasoning: "old" }, user("b")]],
  ["other servers' reasoning is left out", {
    input: [
      user("a"),
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
      { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "x" }] },
      { role: "assistant", content: "b" },
    ],
  }, [user("a"), { role: "assistant", content: "b" }]],
];
for (const [what, body, messages] of conversations) {
  Deno.test(`responses to chat: ${what}`, () => {
    assert.deepEqual(chatRequest(body).messages, messages);
  });
}

const tools = [fn("a", { description: "A", parameters: { type: "object" }, strict: true })];
const chatTools = [
  chatFn("a", { description: "A", parameters: { type: "object" }, strict: true }),
];
const fields: [string, object, object][] = [
  ["functions", { tools }, { tools: chatTools }],
  ["a function that is not strict", { tools: [fn("a", { strict: false, parameters: null })] }, {
    tools: [chatFn("a")],
  }],
  ["a custom tool is a function of one text", {
    tools: [{
      type: "custom",
      name: "p",
      description: "P",
      format: { type: "grammar", syntax: "lark", definition: "start: x" },
    }],
  }, {
    tools: [chatFn("p", {
      description: "P\n\n`input` follows this lark grammar:\nstart: x",
      parameters: inputOnly,
    })],
  }],
  ["a group is flattened, its description first", {
    tools: [
      fn("n__f"),
      {
        type: "namespace",
        name: "n",
        description: "N",
        tools: [fn("f", { description: "F" }), { type: "custom", name: "g" }],
      },
      { type: "namespace", name: "n".repeat(70), description: "", tools: [fn("f"), fn("g")] },
    ],
  }, {
    tools: [
      chatFn("n__f"),
      chatFn("n__f_2", { description: "N\n\nF" }),
      chatFn("n__g", { parameters: inputOnly }),
      chatFn("n".repeat(64)),
      chatFn(`${"n".repeat(60)}_2`),
    ],
  }],
  ["no tools, and nothing about them", {
    tools: [],
    tool_choice: "auto",
    parallel_tool_calls: true,
  }, {}],
  ["tool_choice by word", { tools, tool_choice: "required", parallel_tool_calls: false }, {
    tools: chatTools,
    tool_choice: "required",
    parallel_tool_calls: false,
  }],
  ["tool_choice by name", { tools, tool_choice: { type: "function", name: "a" } }, {
    tools: chatTools,
    tool_choice: chatFn("a"),
  }],
  ["tool_choice of a custom tool", {
    tools: [{ type: "custom", name: "p" }],
    tool_choice: { type: "custom", name: "p" },
  }, { tools: [chatFn("p", { parameters: inputOnly })], tool_choice: chatFn("p") }],
  ["allowed tools are the only ones", {
    tools: [fn("a"), fn("b"), { type: "namespace", name: "n", tools: [fn("c")] }],
    tool_choice: {
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "function", name: "b" }, { type: "namespace", name: "n" }],
    },
  }, { tools: [chatFn("b"), chatFn("n__c")], tool_choice: "required" }],
  ["a schema", {
    text: { format: { type: "json_schema", name: "s", schema: {}, strict: true } },
  }, {
    response_format: {
      type: "json_schema",
      json_schema: { name: "s", schema: {}, strict: true },
    },
  }],
  ["JSON", { text: { format: { type: "json_object" }, verbosity: "low" } }, {
    response_format: { type: "json_object" },
    verbosity: "low",
  }],
  ["plain text of the usual length", {
    text: { format: { type: "text" }, verbosity: "medium" },
  }, {}],
  ["an empty text", { text: {} }, {}],
  ["reasoning", { reasoning: { effort: "low", summary: "auto" } }, { reasoning_effort: "low" }],
  ["sampling and options of other servers", {
    temperature: 0.5,
    top_p: 0.9,
    top_k: 5,
    seed: 1,
    chat_template_kwargs: { enable_thinking: false },
  }, {
    temperature: 0.5,
    top_p: 0.9,
    top_k: 5,
    seed: 1,
    chat_template_kwargs: { enable_thinking: false },
  }],
  ["log probabilities", { top_logprobs: 3 }, { logprobs: true, top_logprobs: 3 }],
  ["log probabilities by include", { include: ["message.output_text.logprobs"] }, {
    logprobs: true,
  }],
  ["who asks, and the tier", { user: "u", safety_identifier: "s", service_tier: "flex" }, {
    user: "u",
    safety_identifier: "s",
    service_tier: "flex",
  }],
  ["a stream", { stream: true }, { stream: true, stream_options: { include_usage: true } }],
  ["what has no effect is left out", {
    store: true,
    metadata: { a: "b" },
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    max_tool_calls: 3,
    stream_options: { include_obfuscation: false },
    client_metadata: { a: 1 },
    include: ["reasoning.encrypted_content", "web_search_call.action.sources"],
    truncation: "disabled",
    background: false,
    context_management: [],
    previous_response_id: null,
    conversation: null,
    include_usage: null,
  }, {}],
];
for (const [what, body, expected] of fields) {
  Deno.test(`responses to chat: ${what} as chat servers know it`, () => {
    const { model, messages, max_tokens, ...rest } = chatRequest(body);
    assert.deepEqual([model, messages, max_tokens], ["test-model", [user("Hi")], 100]);
    assert.deepEqual(rest, expected);
  });
}

Deno.test("responses to chat: the output bound is written as the dialect wants it", () => {
  const newer = chatRequest({ max_output_tokens: 5_000 }, {
    maxTokensField: "max_completion_tokens",
    contextLeft: 60,
  });
  assert.deepEqual([newer.max_completion_tokens, newer.max_tokens], [60, undefined]);
  assert.equal(newer.max_output_tokens, undefined);
  assert.equal(chatRequest({ stream: true }, { requestsUsage: false }).stream_options, undefined);
});

Deno.test("responses to chat: numbers that no double holds keep their digits", () => {
  const body = parseJson('{"model":"m","input":"Hi","seed":12345678901234567890}');
  assert.ok(isObject(body));
  const text = responsesToChat.writeBody({ ...bridgeRequest({}), body }, 100, plainDialect);
  assert.ok(text.includes('"seed":12345678901234567890'));
});

Deno.test("responses to chat: many tools of one name are read in time that grows with them", async () => {
  await assertGrowth((length) => {
    const tools = Array.from({ length }, () => fn("same"));
    return () => {
      const written: { function: { name: string } }[] = chatRequest({ tools }).tools;
      assert.equal(new Set(written.map((tool) => tool.function.name)).size, length);
    };
  }, { size: 5_000 });
});
