import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import { respond, respondStream, upstreamResponse } from "../../support/responses.ts";
import { responseEvents } from "../../../src/formats/responses/stream_events.ts";
import { framesOf } from "../bridges/support.ts";
import { adminKey, type Body, createWorld, type World } from "../../support/world.ts";

async function paidWorld(options: Body = {}): Promise<World> {
  const world = await createWorld(options);
  await world.deposit("ada", "1");
  world.upstream.reply(() => Response.json(upstreamResponse()));
  return world;
}

/** What the upstream got for a request. */
async function sentFor(world: World, fields: Body): Promise<Body> {
  const { status, body } = await respond(world, fields);
  assert.equal(status, 200, JSON.stringify(body));
  return world.upstream.calls.at(-1)?.body ?? assert.fail();
}

const refused: [string, Body, number, string][] = [
  ["no model", { model: undefined }, 400, "model"],
  ["an input that is a number", { input: 7 }, 400, "input"],
  ["an item that is a text", { input: ["Hi"] }, 400, "input.0"],
  ["an item whose type is no text", { input: [{ type: 1 }] }, 400, "input.0.type"],
  ["a content that is a number", { input: [{ role: "user", content: 1 }] }, 400, "input.0.content"],
  ["a part that is a text", { input: [{ role: "user", content: ["a"] }] }, 400, "input.0.content"],
  ["a bound that is a text", { max_output_tokens: "9" }, 400, "max_output_tokens"],
  ["a stream that is a text", { stream: "yes" }, 400, "stream"],
  ["an unknown field", { api_base: "https://evil.test" }, 400, "api_base"],
  ["a known field in capitals", { Model: "other" }, 400, "Model"],
  ["a tool that is a text", { tools: ["web_search"] }, 400, "tools.0"],
  ["a tool without a type", { tools: [{ name: "f" }] }, 400, "tools.0.type"],
  ["background", { background: true }, 400, "background"],
  ["a stored prompt", { prompt: { id: "pmpt_1" } }, 400, "prompt"],
  ["a conversation", { conversation: "conv_1" }, 404, "conversation"],
  ["a conversation as an object", { conversation: { id: "conv_1" } }, 404, "conversation"],
  [
    "a conversation and a response before",
    { conversation: "conv_1", previous_response_id: "resp_1" },
    400,
    "conversation",
  ],
  ["compaction", { context_management: [{ type: "compaction" }] }, 400, "context_management"],
  [
    "a stored file",
    { input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] },
    400,
    "input.0.content.file_id",
  ],
  [
    "a stored image",
    { input: [{ role: "user", content: [{ type: "input_image", file_id: "file-1" }] }] },
    400,
    "input.0.content.file_id",
  ],
  [
    "a stored screenshot",
    {
      input: [{
        type: "computer_call_output",
        call_id: "c",
        output: { type: "computer_screenshot", file_id: "file-1" },
      }],
    },
    400,
    "input.0.output.file_id",
  ],
  ["a service tier without a price", { service_tier: "priority" }, 400, "service_tier"],
];
for (const [what, fields, status, param] of refused) {
  Deno.test(`responses: ${what} is ${status}, names ${param}, and reaches no upstream`, async () => {
    using world = await paidWorld();
    const { status: got, body } = await respond(world, fields);
    assert.equal(got, status, JSON.stringify(body));
    assert.equal(body.error.param, param);
    assert.equal(world.upstream.calls.length, 0);
    assert.equal((await world.balance("ada")).held, "0");
  });
}

Deno.test("responses: fields of OpenAI's reference and of Codex pass on, nulls as well", async () => {
  using world = await paidWorld();
  const fields = {
    ...{ instructions: null, include: ["reasoning.encrypted_content"], metadata: { a: "b" } },
    ...{ parallel_tool_calls: true, store: false, top_p: null, truncation: null, user: "ada" },
    ...{ background: false, conversation: null, prompt: null, previous_response_id: null },
    ...{ service_tier: "auto", stream_options: null, text: { format: null, verbosity: "low" } },
    ...{ prompt_cache_key: "s", safety_identifier: "ada", top_logprobs: null, tool_choice: "auto" },
    ...{ reasoning: { effort: null, summary: null }, context_management: [], temperature: 0.5 },
    ...{ client_metadata: { "x-codex": "1" }, prompt_cache_options: null, tools: null },
    ...{ max_tool_calls: null, prompt_cache_retention: "24h", moderation: null },
    input: [
      { role: "user", content: "Hi" },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes?" }] },
      { type: "function_call", call_id: "c", name: "f", arguments: "{}", id: "fc_1" },
      { type: "function_call_output", call_id: "c", output: "7" },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" },
    ],
  };
  const sent = await sentFor(world, { ...fields, max_output_tokens: 50 });
  assert.deepEqual(sent, { model: "test-model", ...fields, max_output_tokens: 50 });
  const exact =
    `{"model":"test-model","input":"Hi","user":"ada","metadata":{"n":12345678901234567890}}`;
  await world.call("/v1/responses", {
    raw: exact,
    headers: { "content-type": "application/json" },
  });
  assert.match(world.upstream.calls.at(-1)?.text ?? "", /"n":12345678901234567890/);
});

Deno.test("responses: the project's allowed fields open a stored prompt and compaction", async () => {
  const allowedFields = ["prompt", "context_management"];
  using world = await paidWorld({ project: { allowedFields } });
  const fields = { prompt: { id: "pmpt_1" }, context_management: [{ type: "compaction" }] };
  assert.deepEqual((await sentFor(world, fields)).prompt, fields.prompt);
});

Deno.test("responses: a request to compact passes on, and is charged as any other", async () => {
  using world = await paidWorld();
  const item = { type: "compaction", id: "cmp_1", encrypted_content: "opaque" };
  const response = upstreamResponse({ output: [item] });
  world.upstream.reply(({ body: { stream } }) =>
    stream
      ? new Response(framesOf([...responseEvents(response)]), {
        headers: { "content-type": "text/event-stream" },
      })
      : Response.json(response)
  );
  const input = [{ role: "user", content: "Hi" }, { type: "compaction_trigger" }];
  for (const stream of [false, true]) {
    const text = await (await world.call("/v1/responses", {
      body: { model: "test-model", user: "ada", input, stream },
      keepClock: true,
    })).text();
    assert.ok(text.includes('"encrypted_content":"opaque"'), text);
    assert.deepEqual(world.upstream.calls.at(-1)?.body.input, input);
  }
  const charged = await usageOf(world);
  assert.deepEqual(charged.map(({ usage }) => usage.source), ["provider", "provider"]);
  const next = [{ role: "user", content: "Hi" }, item];
  assert.deepEqual((await sentFor(world, { input: next })).input, next);
});

Deno.test("responses: the output bound is the caller's, the model's and the balance's", async () => {
  using world = await paidWorld();
  assert.equal((await sentFor(world, { max_output_tokens: 20 })).max_output_tokens, 20);
  assert.equal((await sentFor(world, { max_output_tokens: 5_000 })).max_output_tokens, 1_000);
  assert.equal((await sentFor(world, { max_output_tokens: null })).max_output_tokens, 1_000);
  await world.deposit("eve", "0.0003");
  const { max_output_tokens: bound } = await sentFor(world, { user: "eve" });
  assert.ok(bound > 16 && bound < 150, `${bound}`);
});

/** How much is held for a request at one millionth for each token in, and output for free. */
async function heldFor(fields: Body): Promise<number> {
  const models = { "gpt-4o": { input: "1", output: "0" } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "900");
  let held = 0;
  world.upstream.reply(async () => {
    held = Number((await world.balance("ada")).held) * 1e6;
    return Response.json(upstreamResponse({ model: "gpt-4o" }));
  });
  const { status, body } = await respond(world, { model: "gpt-4o", ...fields });
  assert.equal(status, 200, JSON.stringify(body));
  return Math.round(held);
}

const png = "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJ" + "A".repeat(40_000);
const image = { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "low" };
const images: [string, Body][] = [
  ["in a message", { input: [{ role: "user", content: [image] }] }],
  [
    "in a tool's output",
    { input: [{ type: "function_call_output", call_id: "c", output: [image] }] },
  ],
  [
    "as a screenshot",
    {
      input: [{
        type: "computer_call_output",
        call_id: "c",
        output: { type: "computer_screenshot", image_url: image.image_url },
      }],
    },
  ],
  [
    "of an earlier response",
    { input: [{ type: "image_generation_call", id: "ig_1", status: "completed", result: png }] },
  ],
];
for (const [where, fields] of images) {
  Deno.test(`responses: an image ${where} is held by its size in pixels, not in bytes`, async () => {
    const held = await heldFor(fields);
    assert.ok(held > 85 && held < 3_000, `${held}`);
  });
}

Deno.test("responses: files in the body are bounded by their bytes, those elsewhere by the window", async () => {
  const file = (part: Body) => ({ input: [{ role: "user", content: [part] }] });
  const data = `data:text/plain;base64,${btoa("word ".repeat(2_000))}`;
  const whole = await heldFor(file({ type: "input_file", filename: "a.txt", file_data: data }));
  assert.ok(whole >= 10_000 && whole < 11_000, `${whole}`);
  const far = await heldFor(file({ type: "input_file", file_url: "https://a.test/a.pdf" }));
  assert.ok(far > 100_000, `${far}`);
});

Deno.test("responses: every text that a model reads is counted where no usage is reported", async () => {
  using world = await paidWorld();
  world.upstream.reply(() => Response.json(upstreamResponse({ usage: null })));
  const text = "word ".repeat(200);
  const counted = async (fields: Body) => {
    await respond(world, fields);
    return (await usageOf(world))[0]?.usage.uncachedInputTokens;
  };
  const base = await counted({});
  const fields: Record<string, Body> = {
    input: { input: text },
    instructions: { instructions: text },
    message: { input: [{ role: "user", content: text }] },
    part: { input: [{ role: "user", content: [{ type: "input_text", text }] }] },
    output: { input: [{ type: "function_call_output", call_id: "c", output: text }] },
    parts: {
      input: [{
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_text", text }],
      }],
    },
    arguments: { input: [{ type: "function_call", call_id: "c", name: "f", arguments: text }] },
    encrypted: { input: [{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: text }] },
    summary: {
      input: [{
        type: "reasoning",
        summary: [{ type: "summary_text", text }],
        encrypted_content: "a",
      }],
    },
    shell: {
      input: [{
        type: "shell_call_output",
        call_id: "c",
        output: [{ stdout: text, stderr: "", outcome: { type: "exit", exit_code: 0 } }],
      }],
    },
    tools: { tools: [{ type: "function", name: "f", description: text, parameters: {} }] },
    schema: {
      text: { format: { type: "json_schema", name: "a", schema: { description: text } } },
    },
  };
  for (const [name, more] of Object.entries(fields)) {
    const tokens = await counted(more);
    assert.ok(tokens - base > 190, `${name}: ${tokens - base}`);
  }
});

Deno.test("responses: the user may be in the path, the header or the body, and a WebSocket is 426", async () => {
  using world = await paidWorld();
  const body = { model: "test-model", input: "Hi" };
  assert.equal((await world.call("/v1/ada/responses", { body })).status, 200);
  const headers = { "x-service-user": "ada" };
  assert.equal((await world.call("/v1/responses", { body, headers })).status, 200);
  assert.equal((await usageOf(world)).length, 2);
  for (const path of ["/v1/responses", "/v1/ada/responses"]) {
    const socket = await world.json(path, { headers: { upgrade: "websocket" } });
    assert.equal(socket.status, 426);
    assert.equal(socket.body.error.code, "websocket_not_supported");
    const plain = await world.json(path);
    assert.equal(plain.status, 405);
    assert.equal(plain.response.headers.get("allow"), "POST, OPTIONS");
  }
});

Deno.test("responses: a tier and a longer cache have their own price where they have one", async () => {
  const price = {
    ...{ input: "1", output: "2", cacheWriteHour: "5" },
    serviceTiers: { priority: { input: "10", output: "20" } },
  };
  using world = await paidWorld({ project: { pricing: { models: { "test-model": price } } } });
  world.upstream.reply(() => Response.json(upstreamResponse({ service_tier: "priority" })));
  assert.equal((await respond(world, { service_tier: "priority" })).status, 200);
  assert.equal((await usageOf(world))[0]?.amount, "0.0002");
  const { response } = await respond(world, {
    input: [{
      role: "user",
      content: [{ type: "input_text", text: "Hi", prompt_cache_breakpoint: { ttl: "12h" } }],
    }],
  });
  assert.equal(response.status, 200);
});

Deno.test("responses: a key's limit of models and an archived project hold here too", async () => {
  using world = await paidWorld();
  assert.equal((await respond(world, { model: "other" })).status, 404);
  const path = `/v1/admin/projects/${world.projectId}/archive`;
  await world.json(path, { method: "POST", key: adminKey });
  assert.equal((await respond(world)).status, 403);
  assert.equal((await respondStream(world)).status, 403);
});
