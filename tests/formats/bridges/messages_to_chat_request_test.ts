import assert from "node:assert/strict";
import { messagesToChat } from "../../../src/formats/bridges/messages_to_chat/bridge.ts";
import type { Body } from "../../support/world.ts";
import { assertRefused, written } from "./support.ts";

const user = { role: "user", content: "Hi" };
const ask = (more: Body = {}): Body => ({ model: "m", max_tokens: 50, messages: [user], ...more });
const asking = (...messages: unknown[]) => ask({ messages });
const use = (id: string, input: Body = { a: 1 }) => ({ type: "tool_use", id, name: "f", input });
const result = (id: string, content?: unknown, more: Body = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  ...(content === undefined ? {} : { content }),
  ...more,
});
const text = (words: string, more: Body = {}) => ({ type: "text", text: words, ...more });
const own = (thinking: string) => ({ type: "thinking", thinking, signature: "reasoning_content" });
const signed = { type: "thinking", thinking: "of Claude", signature: "EqQBCg" };
const png = { type: "base64", media_type: "image/png", data: "aGk=" };
const pdf = { type: "base64", media_type: "application/pdf", data: "JVBERg==" };
const tool = { name: "f", description: "does", input_schema: { type: "object" } };
const pngPart = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } };
const call = (id: string, input = '{"a":1}') => ({
  id,
  type: "function",
  function: { name: "f", arguments: input },
});

const turns: [string, Body, unknown[]][] = [
  ["a system prompt leads", ask({ system: "Be brief." }), [
    { role: "system", content: "Be brief." },
    user,
  ]],
  ["blocks of a system prompt become one text, without their cache marks", {
    ...ask({ system: [text("A", { cache_control: { type: "ephemeral" } }), text("B")] }),
  }, [{ role: "system", content: "A\n\nB" }, user]],
  ["an empty system prompt is none", ask({ system: [] }), [user]],
  [
    "instructions between turns keep their place, as Claude Code sends them",
    asking({ role: "user", content: [text("Hi")] }, { role: "system", content: "Agents: none" }),
    [user, { role: "system", content: "Agents: none" }],
  ],
  [
    "text blocks become one text",
    asking({ role: "user", content: [text("A"), text("B", { cache_control: {} })] }),
    [{ role: "user", content: "A\n\nB" }],
  ],
  [
    "images are parts",
    asking({
      role: "user",
      content: [
        text("See"),
        { type: "image", source: png },
        { type: "image", source: { type: "url", url: "https://x.test/a.png" } },
      ],
    }),
    [{
      role: "user",
      content: [
        text("See"),
        pngPart,
        { type: "image_url", image_url: { url: "https://x.test/a.png" } },
      ],
    }],
  ],
  [
    "a PDF is a file, its context text before it",
    asking({
      role: "user",
      content: [{ type: "document", source: pdf, title: "a.pdf", context: "About" }],
    }),
    [{
      role: "user",
      content: [text("About"), {
        type: "file",
        file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERg==" },
      }],
    }],
  ],
  [
    "a text document is its title and its text",
    asking({
      role: "user",
      content: [
        {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "Body" },
          title: "T",
        },
        { type: "document", source: { type: "content", content: [text("C")] } },
      ],
    }),
    [{ role: "user", content: "T\n\nBody\n\nC" }],
  ],
  [
    "an assistant's thinking is left out, its text and calls are one message",
    asking(
      user,
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "redacted_thinking", data: "x" },
          text("I "),
          text("call"),
          use("t1"),
          use("t2", {}),
        ],
      },
      { role: "user", content: [text("and"), result("t1", "one"), result("t2")] },
    ),
    [
      user,
      { role: "assistant", content: "I call", tool_calls: [call("t1"), call("t2", "{}")] },
      { role: "tool", tool_call_id: "t1", content: "one" },
      { role: "tool", tool_call_id: "t2", content: "" },
      { role: "user", content: "and" },
    ],
  ],
  [
    "calls without a text have null in its place, thinking alone is no message",
    asking(
      { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "" }] },
      { role: "assistant", content: [use("t1")] },
      { role: "user", content: [result("t1", [text("a"), text("b")])] },
    ),
    [
      { role: "assistant", content: null, tool_calls: [call("t1")] },
      { role: "tool", tool_call_id: "t1", content: "a\n\nb" },
    ],
  ],
  [
    "a server's own thinking goes back to it while it answers, and beside every call",
    asking(
      user,
      { role: "assistant", content: [own("early"), use("t1")] },
      { role: "user", content: [result("t1", "one")] },
      { role: "assistant", content: [use("t0")] },
      { role: "user", content: [result("t0", "none")] },
      { role: "assistant", content: [own("of a text"), text("Done")] },
      user,
      { role: "assistant", content: [own("late"), signed, use("t2")] },
      { role: "user", content: [result("t2", "two"), text("go on")] },
    ),
    [
      user,
      { role: "assistant", content: null, reasoning_content: "early", tool_calls: [call("t1")] },
      { role: "tool", tool_call_id: "t1", content: "one" },
      { role: "assistant", content: null, reasoning_content: "", tool_calls: [call("t0")] },
      { role: "tool", tool_call_id: "t0", content: "none" },
      { role: "assistant", content: "Done" },
      user,
      { role: "assistant", content: null, reasoning_content: "late", tool_calls: [call("t2")] },
      { role: "tool", tool_call_id: "t2", content: "two" },
      { role: "user", content: "go on" },
    ],
  ],
  [
    "an error of a tool says so, its images follow with its id",
    asking(
      { role: "assistant", content: [use("t1"), use("t2")] },
      {
        role: "user",
        content: [
          result("t1", "no such file", { is_error: true }),
          result("t2", [text("shot"), { type: "image", source: png }]),
          text("look"),
        ],
      },
    ),
    [
      { role: "assistant", content: null, tool_calls: [call("t1"), call("t2")] },
      { role: "tool", tool_call_id: "t1", content: "Error: no such file" },
      { role: "tool", tool_call_id: "t2", content: "shot" },
      { role: "user", content: [text("[result of t2]"), pngPart, text("look")] },
    ],
  ],
];
for (const [what, body, messages] of turns) {
  Deno.test(`messages to chat: ${what}`, () => {
    assert.deepEqual(written(messagesToChat, body).messages, messages);
  });
}

const fields: [string, Body, Body][] = [
  ["the output bound", {}, { max_tokens: 100 }],
  ["sampling and stops", {
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    stop_sequences: ["END"],
  }, { temperature: 0.5, top_p: 0.9, top_k: 40, stop: ["END"] }],
  ["tools without their cache marks", {
    tools: [{ ...tool, cache_control: { type: "ephemeral" }, strict: true, type: "custom" }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
  }, {
    tools: [{
      type: "function",
      function: {
        name: "f",
        description: "does",
        parameters: { type: "object" },
        strict: true,
      },
    }],
    tool_choice: "auto",
    parallel_tool_calls: false,
  }],
  ["a forced tool", { tools: [tool], tool_choice: { type: "tool", name: "f" } }, {
    tool_choice: { type: "function", function: { name: "f" } },
  }],
  ["any tool", { tools: [tool], tool_choice: { type: "any" } }, { tool_choice: "required" }],
  ["no tool", { tools: [tool], tool_choice: { type: "none" } }, { tool_choice: "none" }],
  ["a schema and an effort", {
    output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
  }, {
    reasoning_effort: "high",
    response_format: {
      type: "json_schema",
      json_schema: { name: "response", schema: { type: "object" }, strict: true },
    },
  }],
  ["a stream and its usage", { stream: true }, {
    stream: true,
    stream_options: { include_usage: true },
  }],
  ["nothing of what has no effect", {
    thinking: { type: "adaptive" },
    metadata: { user_id: "{}" },
    cache_control: { type: "ephemeral" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    service_tier: "auto",
    speed: "standard",
    inference_geo: null,
    mcp_servers: [],
    container: null,
  }, {}],
];
for (const [what, sent, expected] of fields) {
  Deno.test(`messages to chat: carries ${what}`, () => {
    const { messages: _messages, model, max_tokens: bound, ...rest } = written(
      messagesToChat,
      ask(sent),
    );
    assert.deepEqual([model, bound], ["m", 100]);
    const { max_tokens: _, ...more } = expected;
    for (const [name, value] of Object.entries(more)) assert.deepEqual(rest[name], value, name);
    if (!("tools" in sent)) assert.deepEqual(Object.keys(rest).sort(), Object.keys(more).sort());
  });
}

Deno.test("messages to chat: the dialect names the field of the bound, and whether usage is asked for", () => {
  const body = written(messagesToChat, ask({ stream: true }), {
    maxTokensField: "max_completion_tokens",
    maxTokens: 64,
    requestsUsage: false,
  });
  assert.equal(body.max_completion_tokens, 64);
  assert.equal("max_tokens" in body || "stream_options" in body, false);
});

const refused: [string, Body][] = [
  ["max_tokens", ask({ max_tokens: 0 })],
  ["speed", ask({ speed: "fast" })],
  ["service_tier", ask({ service_tier: "batch" })],
  ["inference_geo", ask({ inference_geo: "us" })],
  ["container", ask({ container: "c" })],
  ["mcp_servers", ask({ mcp_servers: [{ type: "url" }] })],
  ["fallbacks", ask({ fallbacks: [] })],
  [
    "context_management.edits.0",
    ask({ context_management: { edits: [{ type: "clear_tool_uses" }] } }),
  ],
  ["output_config.task_budget", ask({ output_config: { task_budget: {} } })],
  ["output_config.format.type", ask({ output_config: { format: { type: "regex" } } })],
  ["tools.0.type", ask({ tools: [{ type: "bash_20250124", name: "bash" }] })],
  ["tools.0.type", ask({ tools: [{ type: "web_search_20250305", name: "web_search" }] })],
  ["tools.0.defer_loading", ask({ tools: [{ ...tool, defer_loading: true }] })],
  ["tools.0.input_examples", ask({ tools: [{ ...tool, input_examples: [{}] }] })],
  ["tools.0.input_schema", ask({ tools: [{ name: "f" }] })],
  ["tool_choice.type", ask({ tools: [tool], tool_choice: { type: "maybe" } })],
  ["messages.1.role", asking(user, { role: "assistant", content: "{" })],
  ["messages.0.role", asking({ role: "tool", content: "x" })],
  ["messages.0.content.0.type", asking({ role: "user", content: [{ type: "search_result" }] })],
  [
    "messages.0.content.0.source.type",
    asking({
      role: "user",
      content: [{ type: "image", source: { type: "file", file_id: "f" } }],
    }),
  ],
  [
    "messages.0.content.0.source.type",
    asking({
      role: "user",
      content: [{ type: "document", source: { type: "url", url: "https://x.test/a.pdf" } }],
    }),
  ],
  [
    "messages.0.content.0.citations",
    asking({
      role: "user",
      content: [{ type: "document", source: pdf, citations: { enabled: true } }],
    }),
  ],
  [
    "messages.0.content.0.type",
    asking(
      {
        role: "assistant",
        content: [{ type: "server_tool_use", id: "s", name: "web", input: {} }],
      },
      user,
    ),
  ],
  [
    "messages.0.content.0.content.0.type",
    asking({
      role: "user",
      content: [result("t", [{ type: "tool_reference", tool_name: "f" }])],
    }),
  ],
  [
    "messages.0.content.0.tool_use_id",
    asking({ role: "user", content: [{ type: "tool_result" }] }),
  ],
  ["messages.0.content", asking({ role: "user", content: 5 })],
  ["messages.0.content.0", asking({ role: "user", content: ["x"] })],
  ["system.0.type", ask({ system: [{ type: "image" }] })],
];
for (const [param, body] of refused) {
  Deno.test(`messages to chat: ${param} of ${JSON.stringify(body).slice(36, 110)} is 400 by name`, () =>
    assertRefused(messagesToChat, body, param));
}

const begun = asking(user, { role: "assistant", content: [{ type: "text", text: "{" }] });
const beganWith = (more: Body) => [user, { role: "assistant", content: "{", ...more }];

Deno.test("messages to chat: what the assistant has begun is continued as the server is asked to", () => {
  const prefixed = written(messagesToChat, begun, { prefill: "prefix" });
  assert.deepEqual(prefixed.messages, beganWith({ prefix: true }));
  assert.equal(prefixed.continue_final_message, undefined);
  const continued = written(messagesToChat, begun, { prefill: "continue_final_message" });
  assert.deepEqual(continued.messages, beganWith({}));
  assert.equal(continued.continue_final_message, true);
  assert.equal(continued.add_generation_prompt, false);
  const asked = written(messagesToChat, asking(user), { prefill: "continue_final_message" });
  assert.equal(asked.continue_final_message, undefined);
});

Deno.test("messages to chat: a call or nothing at the end cannot be continued", () => {
  for (const content of [[{ type: "tool_use", id: "t", name: "f", input: {} }], ""]) {
    assert.throws(
      () =>
        written(messagesToChat, asking(user, { role: "assistant", content }), {
          prefill: "prefix",
        }),
      { param: "messages.1.role" },
    );
  }
});
