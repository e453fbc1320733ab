import assert from "node:assert/strict";
import { chatToMessages } from "../../../src/formats/bridges/chat_to_messages/bridge.ts";
import type { Body } from "../../support/world.ts";
import { assertRefused, written } from "./support.ts";

const user = { role: "user", content: "Hi" };
const ask = (more: Body = {}): Body => ({ model: "m", messages: [user], ...more });
const asking = (...messages: unknown[]) => ask({ messages });
const text = (words: string, more: Body = {}) => ({ type: "text", text: words, ...more });
const call = (id: string, args = '{"a":1}') => ({
  id,
  type: "function",
  function: { name: "f", arguments: args },
});
const use = (id: string, input: Body = { a: 1 }) => ({ type: "tool_use", id, name: "f", input });
const said = (...content: unknown[]) => ({ role: "user", content });
const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
const image = (url: string, more: Body = {}) => ({
  type: "image_url",
  image_url: { url, ...more },
});
const file = (fields: Body) => ({ type: "file", file: fields });
const mark = { type: "ephemeral", ttl: "1h" };

const turns: [string, Body, unknown[], unknown?][] = [
  ["a text is a block", ask(), [said(text("Hi"))]],
  [
    "leading instructions are the system prompt",
    asking({ role: "system", content: "A" }, { role: "developer", content: [text("B")] }, user),
    [said(text("Hi"))],
    [text("A"), text("B")],
  ],
  [
    "later instructions keep their place",
    asking(user, { role: "system", content: "B" }),
    [said(text("Hi")), { role: "system", content: [text("B")] }],
  ],
  [
    "messages of one role are one turn, empty ones are none",
    asking(user, { role: "user", content: "there", name: null }, {
      role: "assistant",
      content: "",
    }, { role: "user", content: [text(""), text("!")] }),
    [said(text("Hi"), text("there"), text("!"))],
  ],
  [
    "calls and their results",
    asking(
      user,
      { role: "assistant", content: null, tool_calls: [call("a"), call("b:1", "")] },
      { role: "tool", tool_call_id: "a", name: "f", content: "one" },
      { role: "tool", tool_call_id: "b:1", content: [] },
      user,
    ),
    [
      said(text("Hi")),
      { role: "assistant", content: [use("a"), use("b_58_1", {})] },
      said(
        { type: "tool_result", tool_use_id: "a", content: [text("one")] },
        { type: "tool_result", tool_use_id: "b_58_1" },
        text("Hi"),
      ),
    ],
  ],
  [
    "signed thinking comes first, other reasoning is left out",
    asking(
      user,
      {
        role: "assistant",
        content: "A",
        reasoning_content: "hm",
        thinking_blocks: [
          { type: "thinking", thinking: "hm", signature: "sig" },
          { type: "thinking", thinking: "hm", signature: "" },
        ],
        refusal: null,
        annotations: [],
        audio: null,
        function_call: null,
      },
      user,
    ),
    [
      said(text("Hi")),
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: "hm", signature: "sig" }, text("A")],
      },
      said(text("Hi")),
    ],
  ],
  [
    "a refusal is what the assistant said",
    asking({ role: "assistant", content: null, refusal: "No." }, user),
    [{ role: "assistant", content: [text("No.")] }, said(text("Hi"))],
  ],
  [
    "an assistant's message at the end is continued where it asks for that",
    asking(user, { role: "assistant", content: "{", prefix: true }),
    [said(text("Hi")), { role: "assistant", content: [text("{")] }],
  ],
  [
    "images are data or addresses",
    asking(said(
      image("data:image/png;base64,aGk=", { detail: "auto" }),
      image("https://x.test/a.png"),
    )),
    [said(
      { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
      { type: "image", source: { type: "url", url: "https://x.test/a.png" } },
    )],
  ],
  [
    "files are documents with their name",
    asking(said(
      file({ file_data: "data:application/pdf;base64,JVBERg==", filename: "a.pdf" }),
      file({ file_data: "data:text/plain;charset=utf-8;base64,w6k=" }),
    )),
    [said(
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERg==" },
        title: "a.pdf",
      },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "é" } },
    )],
  ],
  [
    "marks for the cache stay where they are",
    asking(
      { role: "system", content: [text("A", { cache_control: mark })] },
      { ...user, cache_control: mark },
    ),
    [said(text("Hi", { cache_control: mark }))],
    [text("A", { cache_control: mark })],
  ],
];
for (const [what, body, messages, system] of turns) {
  Deno.test(`chat to messages: ${what}`, () => {
    const made = written(chatToMessages, body);
    assert.deepEqual([made.messages, made.system], [messages, system]);
  });
}

const fields: [string, Body, Body][] = [
  ["sampling and stops", { temperature: 0.5, top_p: 0.9, top_k: 3, stop: "END" }, {
    temperature: 0.5,
    top_p: 0.9,
    top_k: 3,
    stop_sequences: ["END"],
  }],
  ["stops as a list", { stop: ["a", "b"] }, { stop_sequences: ["a", "b"] }],
  ["tools, and a single call at a time", {
    tools: [{ ...tool, cache_control: mark }, { function: { name: "g", strict: true } }],
    parallel_tool_calls: false,
  }, {
    tools: [
      { name: "f", input_schema: { type: "object" }, cache_control: mark },
      { name: "g", input_schema: { type: "object" }, strict: true },
    ],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
  }],
  ["a forced tool", {
    tools: [tool],
    tool_choice: { type: "function", function: { name: "f" } },
    parallel_tool_calls: true,
  }, {
    tools: [{ name: "f", input_schema: { type: "object" } }],
    tool_choice: { type: "tool", name: "f" },
  }],
  ["any tool", { tools: [tool], tool_choice: "required" }, {
    tools: [{ name: "f", input_schema: { type: "object" } }],
    tool_choice: { type: "any" },
  }],
  ["no tool", { tools: [tool], tool_choice: "none", parallel_tool_calls: false }, {
    tools: [{ name: "f", input_schema: { type: "object" } }],
    tool_choice: { type: "none" },
  }],
  ["a schema and an effort", {
    reasoning_effort: "high",
    response_format: {
      type: "json_schema",
      json_schema: { name: "x", strict: true, schema: { type: "object" } },
    },
  }, {
    output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
  }],
  ["thinking, and none of it", { reasoning_effort: "none" }, { thinking: { type: "disabled" } }],
  ["Anthropic's own thinking", { thinking: { type: "enabled", budget_tokens: 2000 } }, {
    thinking: { type: "enabled", budget_tokens: 2000 },
  }],
  ["a standard tier", { service_tier: "default" }, { service_tier: "standard_only" }],
  ["a stream", { stream: true, stream_options: { include_usage: true } }, { stream: true }],
  ["nothing of what has no effect", {
    user: "ada",
    safety_identifier: "x",
    metadata: {},
    store: true,
    prompt_cache_key: "k",
    n: 1,
    frequency_penalty: 0,
    presence_penalty: 0,
    logit_bias: {},
    logprobs: false,
    seed: null,
    modalities: ["text"],
    response_format: { type: "text" },
    temperature: 1,
    top_p: 1,
    service_tier: "auto",
    max_completion_tokens: 7,
    n_predict: 7,
    tools: [],
    tool_choice: "auto",
    stop: [],
  }, {}],
];
for (const [what, sent, expected] of fields) {
  Deno.test(`chat to messages: carries ${what}`, () => {
    const { messages: _, ...rest } = written(chatToMessages, ask(sent));
    assert.deepEqual(rest, { model: "m", max_tokens: 100, ...expected });
  });
}

const refused: [string, Body][] = [
  ["n", { n: 2 }],
  ["temperature", { temperature: 1.2 }],
  ["logprobs", { logprobs: true }],
  ["logit_bias", { logit_bias: { 5: 1 } }],
  ["presence_penalty", { presence_penalty: 0.1 }],
  ["frequency_penalty", { frequency_penalty: -1 }],
  ["seed", { seed: 1 }],
  ["audio", { audio: { voice: "x" } }],
  ["modalities", { modalities: ["text", "audio"] }],
  ["functions", { functions: [{}] }],
  ["function_call", { function_call: { name: "f" } }],
  ["web_search_options", { web_search_options: {} }],
  ["min_p", { min_p: 0.1 }],
  ["verbosity", { verbosity: "low" }],
  ["service_tier", { service_tier: "flex" }],
  ["reasoning_effort", { reasoning_effort: "minimal" }],
  ["response_format.type", { response_format: { type: "json_object" } }],
  ["response_format.json_schema.schema", {
    response_format: { type: "json_schema", json_schema: {} },
  }],
  ["tools.0.type", { tools: [{ type: "custom", custom: { name: "f" } }] }],
  ["tools.0.type", { tools: [{ type: "web_search_20250305" }] }],
  ["tool_choice", { tools: [tool], tool_choice: { type: "allowed_tools" } }],
  ["messages.0.name", { messages: [{ ...user, name: "Bob" }] }],
  ["messages.0.role", { messages: [{ role: "function", name: "f", content: "x" }] }],
  ["messages.1.role", { messages: [user, { role: "assistant", content: "A" }] }],
  ["messages.0.audio", { messages: [{ role: "assistant", audio: { id: "a" } }, user] }],
  ["messages.0.tool_calls.0.function.arguments", {
    messages: [{ role: "assistant", tool_calls: [call("a", "{")] }, user],
  }],
  ["messages.0.tool_calls.0.type", {
    messages: [{ role: "assistant", tool_calls: [{ id: "a", type: "custom" }] }, user],
  }],
  ["messages.0.tool_call_id", { messages: [{ role: "tool", content: "x" }] }],
  ["messages.0.content.0.type", { messages: [said({ type: "input_audio", input_audio: {} })] }],
  ["messages.0.content.0.image_url.url", { messages: [said(image("file:///etc/passwd"))] }],
  ["messages.0.content.0.image_url.detail", {
    messages: [said(image("https://x.test/a", { detail: "low" }))],
  }],
  ["messages.0.content.0.file.file_id", { messages: [said(file({ file_id: "f" }))] }],
  ["messages.0.content.0.file.file_data", {
    messages: [said(file({ file_data: "data:audio/mp3;base64,aGk=" }))],
  }],
  ["messages.0.content", {
    messages: [{ role: "system", content: [image("https://x.test/a")] }, user],
  }],
  ["messages", { messages: [{ role: "user", content: "" }] }],
];
for (const [param, body] of refused) {
  Deno.test(`chat to messages: ${JSON.stringify(body).slice(0, 90)} is 400 by name`, () =>
    assertRefused(chatToMessages, ask(body), param));
}
