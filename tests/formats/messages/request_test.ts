import assert from "node:assert/strict";
import { message, messagesWorld, send, sendStream } from "../../support/messages.ts";
import { type Body, createWorld } from "../../support/world.ts";

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });

const bad: [string, Body, string][] = [
  ["no model", { model: undefined }, "model"],
  ["no bound", { max_tokens: undefined }, "max_tokens"],
  ["a negative bound", { max_tokens: -1 }, "max_tokens"],
  ["half a token", { max_tokens: 1.5 }, "max_tokens"],
  ["a bound beyond whole numbers", { max_tokens: 1e300 }, "max_tokens"],
  ["no messages", { messages: [] }, "messages"],
  ["a role of OpenAI's", { messages: [{ role: "tool", content: "a" }] }, "messages.0.role"],
  ["no content", { messages: [{ role: "user" }] }, "messages.0.content"],
  ["content without a type", user([{ text: "a" }]), "messages.0.content"],
  ["content that is a number", user(1), "messages.0.content"],
  ["a system prompt that is an object", { system: { text: "a" } }, "system"],
  ["tools that are no objects", { tools: ["a"] }, "tools"],
  ["a thinking budget of words", {
    thinking: { type: "enabled", budget_tokens: "many" },
  }, "thinking.budget_tokens"],
  ["a stream that is a word", { stream: "yes" }, "stream"],
  ["another letter case", { Max_Tokens: 5 }, "Max_Tokens"],
  ["an unknown field", { api_base: "https://elsewhere" }, "api_base"],
  ["other models", { fallbacks: [{ model: "other" }] }, "fallbacks"],
  ["another account", { workspace_id: "a" }, "workspace_id"],
  ["what the upstream keeps", { thread: { type: "create" } }, "thread"],
  ["an unknown member of a message", {
    messages: [{ role: "user", content: "a", route: 1 }],
  }, "messages.0.route"],
  ["an unknown member of a tool", {
    tools: [{ name: "a", input_schema: {}, model: "other" }],
  }, "tools.0.model"],
  ["an unknown output option", { output_config: { model: "other" } }, "output_config.model"],
  [
    "an image of another's files",
    user([
      { type: "image", source: { type: "file", file_id: "file_1" } },
    ]),
    "messages.0.content",
  ],
  [
    "a file in a result of a tool",
    user([{
      type: "tool_result",
      tool_use_id: "a",
      content: [{ type: "document", source: { type: "file", file_id: "file_1" } }],
    }]),
    "messages.0.content",
  ],
  [
    "a file for a container",
    user([{ type: "container_upload", file_id: "file_1" }]),
    "messages.0.content",
  ],
  ["a tool within a message", user([{ type: "tool_addition", tool: {} }]), "messages.0.content"],
  ["a container", { container: "container_1" }, "container"],
  ["a compaction", { compaction: { type: "summarize" } }, "compaction"],
  ["a compaction as an edit", {
    context_management: { edits: [{ type: "compact_20260112" }] },
  }, "context_management"],
];
for (const [what, fields, param] of bad) {
  Deno.test(`messages request: ${what} is 400 and names the field`, async () => {
    using world = await messagesWorld();
    const { status, body } = await send(world, fields);
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal(body.error.type, "invalid_request_error");
    assert.equal(body.error.param, param, body.error.message);
    const [last = ""] = param.toLowerCase().split(".").reverse();
    assert.ok(body.error.message.toLowerCase().includes(last), body.error.message);
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("messages request: what a project passes on unread is still refused where it costs", async () => {
  using world = await messagesWorld({ project: { unknownFields: "pass" } });
  const refused = [
    { fallbacks: [{ model: "other" }] },
    { thread: { type: "create" } },
    { models: ["other"] },
    { Thread: { type: "create" } },
    user([{ type: "tool_addition", tool: { type: "web_search_20250305", name: "web_search" } }]),
    user([{ type: "image", source: { type: "file", file_id: "file_1" } }]),
  ];
  for (const fields of refused) assert.equal((await send(world, fields)).status, 400);
  const output = { type: "code_execution_output", file_id: "file_1" };
  const result = { type: "code_execution_result", stdout: "", content: [output] };
  const earlier = { type: "code_execution_tool_result", tool_use_id: "a", content: result };
  assert.equal((await send(world, user([earlier]))).status, 200);
  assert.equal((await send(world, { new_field: 1 })).status, 200);
  assert.equal(world.upstream.calls[1]?.body.new_field, 1);
});

Deno.test("messages request: everything that Claude Code sends is passed on unchanged", async () => {
  using world = await messagesWorld();
  const body = {
    max_tokens: 32_000,
    messages: [{
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>…</system-reminder>" },
        { type: "text", text: "Hi", cache_control: { type: "ephemeral" } },
      ],
    }],
    system: [
      { type: "text", text: "You are Claude Code.", cache_control: { type: "ephemeral" } },
    ],
    tools: [{
      name: "Bash",
      description: "Runs a command",
      input_schema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { command: { type: "string" } },
        additionalProperties: false,
      },
    }],
    metadata: { user_id: '{"device_id":"a","session_id":"b"}' },
    thinking: { type: "enabled", budget_tokens: 31_999 },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    output_config: { effort: "high" },
    temperature: 1,
    stream: true,
  };
  const response = await sendStream(world, body);
  assert.equal(response.status, 200);
  await response.text();
  const { model, ...sent } = world.upstream.calls[0]?.body ?? {};
  assert.equal(model, "claude-sonnet-5");
  assert.deepEqual(sent, body);
});

Deno.test("messages request: a bound of zero fills the cache, and costs the prompt", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    message({
      content: [],
      stop_reason: "max_tokens",
      usage: {
        input_tokens: 5,
        output_tokens: 0,
        cache_creation_input_tokens: 1000,
        cache_read_input_tokens: 0,
      },
    })
  );
  const { status, body } = await send(world, {
    max_tokens: 0,
    messages: [{ role: "user", content: "word ".repeat(1000) }],
  });
  assert.equal(status, 200);
  assert.equal(world.upstream.calls[0]?.body.max_tokens, 0);
  assert.deepEqual([body.content, body.usage.cost_exact], [[], "0.003765"]);
});

for (const unknownFields of ["refuse", "pass"]) {
  Deno.test(`messages: a thread is refused so that clients step back, with unknownFields ${unknownFields}`, async () => {
    using world = await createWorld({ project: { unknownFields } });
    await world.deposit("ada", "1");
    const { status, body } = await world.json("/v1/messages", {
      body: {
        model: "test-model",
        max_tokens: 9,
        messages: [{ role: "user", content: "Hi" }],
        thread: { type: "create" },
      },
      headers: { "x-service-user": "ada" },
    });
    assert.equal(status, 400);
    assert.deepEqual(body.error.details, {
      error_code: "thread_unsupported_request",
      unsupported: ["thread"],
    });
    assert.equal(world.upstream.calls.length, 0);
  });
}
