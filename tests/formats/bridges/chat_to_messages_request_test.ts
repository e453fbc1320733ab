import assert from "node:assert/strict";
import { chatToMessages } from "../../../src/formats/bridges/chat_to_messages/bridge.ts";
import type { Body } from "../../support/world.ts";
import { written } from "./support.ts";

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
    "later instructions move to the system prompt, and turns around them are one",
    asking(
      { role: "system", content: "A" },
      user,
      { role: "system", content: "B" },
      user,
      { role: "developer", content: [text("C")] },
    ),
    [said(text("Hi"), text("Hi"))],
    [text("A"), text("B"), text("C")],
  ],
  [
    "instructions alone are what the user says",
    asking({ role: "system", content: "A" }, { role: "developer", content: "B" }),
    [said(text("A"), text("B"))],
  ],
  [
    "blank texts are left out, in each role and in results of tools",
    asking(
      { role: "system", content: " \n" },
      { role: "user", content: [text("Hi"), text(" ")] },
      { role: "assistant", content: "\n\n", tool_calls: [call("a")] },
      { role: "tool", tool_call_id: "a", content: " " },
      { role: "user", content: "\t" },
    ),
    [
      said(text("Hi")),
      { role: "assistant", content: [use("a")] },
      said({ type: "tool_result", tool_use_id: "a" }),
    ],
  ],
  [
    "the name of the only one who speaks is left out",
    asking(
      { role: "system", name: "rules", content: "A" },
      { ...user, name: "Bob" },
      { role: "assistant", name: "writer", content: "B" },
      { ...user, name: "Bob" },
    ),
    [said(text("Hi")), { role: "assistant", content: [text("B")] }, said(text("Hi"))],
    [text("A")],
  ],
  [
    "of several who speak, each is named",
    asking(
      { ...user, name: "Bob" },
      user,
      { role: "user", name: "Eve", content: [image("https://x.test/a.png")] },
    ),
    [said(
      text("Bob: Hi"),
      text("Hi"),
      text("Eve:"),
      { type: "image", source: { type: "url", url: "https://x.test/a.png" } },
    )],
  ],
  [
    "older calls of functions",
    asking(
      user,
      { role: "assistant", content: null, function_call: { name: "f", arguments: '{"a":1}' } },
      { role: "function", name: "f", content: "one" },
    ),
    [
      said(text("Hi")),
      { role: "assistant", content: [use("call_1")] },
      said({ type: "tool_result", tool_use_id: "call_1", content: [text("one")] }),
    ],
  ],
  [
    "calls of custom tools",
    asking(
      user,
      {
        role: "assistant",
        tool_calls: [{ id: "a", type: "custom", custom: { name: "f", input: "x" } }],
      },
      { role: "tool", tool_call_id: "a", content: "one" },
    ),
    [
      said(text("Hi")),
      { role: "assistant", content: [use("a", { input: "x" })] },
      said({ type: "tool_result", tool_use_id: "a", content: [text("one")] }),
    ],
  ],
  [
    "a continued message has no white space at its end",
    asking(user, { role: "assistant", content: "The answer: \n", prefix: true }),
    [said(text("Hi")), { role: "assistant", content: [text("The answer:")] }],
  ],
  [
    "types of images by names that Anthropic does not know",
    asking(said(
      image("data:image/jpg;base64,aGk="),
      image("data:IMAGE/JPG;base64,aGk=", { detail: "low" }),
    )),
    [said(
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "aGk=" } },
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "aGk=" } },
    )],
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
  ["allowed tools, of which the model does not see the others", {
    tools: [tool, { ...tool, function: { name: "g" } }],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
    },
  }, {
    tools: [{ name: "f", input_schema: { type: "object" } }],
    tool_choice: { type: "any" },
  }],
  ["functions of the older form, one call at a time", {
    functions: [{ name: "f", description: "d", parameters: { type: "object" } }],
    function_call: { name: "f" },
  }, {
    tools: [{ name: "f", description: "d", input_schema: { type: "object" } }],
    tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true },
  }],
  ["functions that the model may call", { functions: [{ name: "f" }], function_call: "auto" }, {
    tools: [{ name: "f", input_schema: { type: "object" } }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
  }],
  ["a custom tool as a function of one text", {
    tools: [{
      type: "custom",
      custom: {
        name: "f",
        description: "d",
        format: { type: "grammar", grammar: { syntax: "lark", definition: "start: WORD" } },
      },
    }],
    tool_choice: { type: "custom", custom: { name: "f" } },
  }, {
    tools: [{
      name: "f",
      description: "d\n\n`input` follows this lark grammar:\nstart: WORD",
      input_schema: {
        type: "object",
        properties: { input: { type: "string" } },
        required: ["input"],
      },
    }],
    tool_choice: { type: "tool", name: "f" },
  }],
  ["JSON without a schema in words", { response_format: { type: "json_object" } }, {
    system: [text("Answer with one JSON object and nothing else: no other text, no Markdown.")],
  }],
  ["the least effort", { reasoning_effort: "minimal" }, { output_config: { effort: "low" } }],
  ["stops that are not blank", { stop: ["", " ", "\n", "END"] }, { stop_sequences: ["END"] }],
  ["no stop that is blank", { stop: "\n" }, {}],
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
