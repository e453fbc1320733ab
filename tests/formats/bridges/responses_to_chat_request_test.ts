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
