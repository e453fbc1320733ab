import assert from "node:assert/strict";
import { chat } from "../support/chat.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

async function worldWith(project: Record<string, unknown>): Promise<World> {
  const world = await createWorld({ project });
  await world.deposit("ada", "1");
  return world;
}

/** Fields that cost what is not priced, or reach other models, keys and addresses. */
const tricks = [
  ...["deferred", "prediction", "provider", "preset", "route", "user_config", "api_base"],
  ...["base_url", "api_key", "custom_llm_provider", "best_of", "use_beam_search"],
  ...["prompt_logprobs", "chat_template", "priority", "kv_transfer_params", "max_new_tokens"],
  ...["max_output_tokens", "options", "features", "web_search", "mcp_servers", "files"],
];

Deno.test("fields: unknown ones are refused, opened one by one, or all passed on", async () => {
  using world = await worldWith({});
  using opened = await worldWith({ allowedFields: tricks });
  using open = await worldWith({ unknownFields: "pass" });
  for (const field of tricks) {
    const { status, body: { error } } = await chat(world, { [field]: "x" });
    assert.deepEqual([status, error.code, error.param], [400, "unknown_parameter", field]);
    assert.match(error.message, /'allowedFields'.*'unknownFields/);
    for (const passing of [opened, open]) {
      assert.equal((await chat(passing, { [field]: "x" })).status, 200, field);
      assert.equal(passing.upstream.calls.at(-1)?.body[field], "x");
    }
  }
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("fields: those of OpenAI's reference, and harmless ones of other servers, go on unchanged", async () => {
  using world = await worldWith({});
  const fields = {
    ...{ frequency_penalty: 0.1, presence_penalty: 0.1, logit_bias: {}, logprobs: true },
    ...{ top_logprobs: 2, stop: ["x"], seed: 1, temperature: 0.5, top_p: 0.9 },
    ...{ parallel_tool_calls: false, tool_choice: "auto", verbosity: "low", store: false },
    ...{ metadata: { a: "b" }, prompt_cache_key: "k", prompt_cache_retention: "24h" },
    ...{ top_k: 40, min_p: 0.1, repetition_penalty: 1.1, guided_json: {}, cache_prompt: true },
    ...{ chat_template_kwargs: { enable_thinking: false }, include_reasoning: false },
  };
  const tools = [{
    type: "function",
    function: { name: "f" },
    cache_control: { type: "ephemeral" },
  }];
  const messages = [
    { role: "user", content: "Hi", name: "ada", cache_control: { type: "ephemeral" } },
    { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [], refusal: null },
    { role: "tool", content: "1", tool_call_id: "c" },
  ];
  const { status } = await chat(world, { ...fields, tools, messages });
  assert.equal(status, 200);
  const sent = world.upstream.calls[0]?.body ?? {};
  assert.partialDeepStrictEqual(sent, { ...fields, tools, messages });
});

const nested: [Record<string, unknown>, string][] = [
  [{ messages: [{ role: "user", content: "Hi", files: [] }] }, "messages.0.files"],
  [
    { tools: [{ type: "function", function: { name: "f" }, defer_loading: true }] },
    "tools.0.defer_loading",
  ],
];
for (const [fields, param] of nested) {
  Deno.test(`fields: ${param} is refused by its place`, async () => {
    using world = await worldWith({});
    const { status, body } = await chat(world, fields);
    assert.deepEqual([status, body.error.param], [400, param]);
  });
}

Deno.test("fields: a legacy completion has a list of its own", async () => {
  using world = await worldWith({});
  const send = (fields: Record<string, unknown>) =>
    world.json("/v1/completions", {
      body: { model: "test-model", prompt: "Hi", user: "ada", ...fields },
    });
  assert.equal((await send({ messages: [] })).status, 400);
  assert.equal(
    (await send({ suffix: "x", best_of: 1, echo: false, top_k: 1 })).status === 400,
    false,
  );
});

const price = { input: "1", output: "2", maxOutputTokens: 1000 };
const priced: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["a service tier", { serviceTiers: { flex: { factor: "0.5" } } }, { service_tier: "flex" }],
  ["fast mode", { serviceTiers: { fast: { factor: "6" } } }, { speed: "fast" }],
  ["audio", { audioOutput: "20" }, { modalities: ["text", "audio"], audio: { voice: "a" } }],
  ["images", { imageOutput: "30" }, { modalities: ["text", "image"] }],
  ["a search", { toolCalls: { web_search: "0.01" } }, { web_search_options: {} }],
  ["a search by its request", { request: "0.01" }, { web_search_options: {} }],
  ["a hosted tool", { toolCalls: { web_search: "0.01" } }, {
    tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }],
  }],
  ["OpenRouter's web plugin", { toolCalls: { web_search: "0.01" } }, { plugins: [{ id: "web" }] }],
  ["xAI's live search", { toolCalls: { source: "0.025" } }, { search_parameters: {} }],
];
for (const [what, more, fields] of priced) {
  Deno.test(`fields: ${what} is passed on where the price covers it, and only there`, async () => {
    const models = { "test-model": { ...price, ...more }, plain: price };
    using world = await worldWith({ pricing: { models } });
    assert.equal((await chat(world, fields)).status, 200);
    const { status, body } = await chat(world, { ...fields, model: "plain" });
    assert.deepEqual([status, body.error.code], [400, "unsupported_parameter"]);
    assert.equal(world.upstream.calls.length, 1);
  });
}

Deno.test("fields: a hold covers the calls of hosted tools that a request allows", async () => {
  const models = { "test-model": { ...price, toolCalls: { web_search: "0.1" } } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "0.35");
  const tool = (max_uses: number) => ({ tools: [{ type: "web_search_20250305", max_uses }] });
  assert.equal(
    (await chat(world, { ...tool(4), max_tokens: 10 })).body.paywall?.reason,
    "insufficient_funds",
  );
  assert.equal((await chat(world, { ...tool(3), max_tokens: 10 })).body.paywall, undefined);
});

Deno.test("fields: a new project refuses unknown ones, and the setting is changed by the API", async () => {
  using world = await worldWith({});
  const path = `/v1/admin/projects/${world.projectId}`;
  const { body: { project } } = await world.json(path, { key: adminKey });
  assert.equal(project.unknownFields, "refuse");
  await world.json(path, { method: "PATCH", key: adminKey, body: { unknownFields: "pass" } });
  assert.equal((await chat(world, { preset: "x" })).status, 200);
});
