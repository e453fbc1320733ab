import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import {
  eventStream,
  functionCall,
  message,
  openAiClient,
  respond,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../../support/responses.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

const answer = (more: Body = {}) => () => Response.json(upstreamResponse(more));
const cost = { cost: 0.00002, cost_exact: "0.00002" };

async function paidWorld(options: Body = {}): Promise<World> {
  const world = await createWorld(options);
  await world.deposit("ada", "1");
  return world;
}

Deno.test("responses: a whole response is passed on, and charged by its usage", async () => {
  using world = await paidWorld();
  world.upstream.reply(answer({ custom: { kept: 1 } }));
  const sent = { instructions: "Be short.", temperature: null, text: {}, include: null };
  const { status, body, response } = await respond(world, sent);
  assert.equal(status, 200);
  const usage = { ...tokens(10, 5), ...cost };
  assert.deepEqual(body, { ...upstreamResponse({ custom: { kept: 1 } }), usage });
  assert.equal(response.headers.get("x-service-cost"), "0.00002");
  const [call] = world.upstream.calls;
  assert.equal(call?.url, "https://upstream.test/v1/responses");
  assert.deepEqual(call?.body, {
    ...{ model: "test-model", input: "Hi", user: "ada" },
    ...sent,
    max_output_tokens: 1000,
  });
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("responses: cached input, writes to the cache and reasoning are charged by their class", async () => {
  const price = { input: "1", output: "2", cachedInput: "0.1", cacheWriteHour: "3" };
  using world = await paidWorld({ project: { pricing: { models: { "test-model": price } } } });
  const details = { cached_tokens: 60, cache_write_tokens: 20 };
  const usage = tokens(100, 50, {
    input_tokens_details: { ...details, cache_write_tokens_details: { ttl_12h_tokens: 20 } },
    output_tokens_details: { reasoning_tokens: 30 },
  });
  world.upstream.reply(answer({ usage }));
  const options = { prompt_cache_options: { ttl: "12h" } };
  const { body } = await respond(world, options);
  // 20 new, 60 read, 20 written, 50 out: 20 + 6 + 60 + 100 millionths.
  assert.equal(body.usage.cost_exact, "0.000186");
  assert.deepEqual(body.usage.input_tokens_details, usage.input_tokens_details);
  assert.equal(body.usage.output_tokens_details.reasoning_tokens, 30);
});

Deno.test("responses: what clients rely on is added where the upstream leaves it out", async () => {
  using world = await paidWorld();
  const bare = {
    output: [
      { content: [{ type: "output_text", text: "Hi" }] },
      { type: "message", content: "there" },
      { type: "function_call", name: "f", arguments: { a: 1 } },
      { type: "reasoning", id: "rs_1" },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  };
  world.upstream.reply(() => Response.json(bare));
  const { body } = await respond(world);
  assert.match(body.id, /^resp_[0-9A-Z]{26}$/);
  assert.equal(typeof body.created_at, "number");
  assert.deepEqual([body.object, body.model, body.status], ["response", "test-model", "completed"]);
  const [first, second, call, reasoning] = body.output;
  assert.deepEqual(first.content, [{ type: "output_text", text: "Hi", annotations: [] }]);
  assert.deepEqual(second.content, [{ type: "output_text", text: "there", annotations: [] }]);
  assert.match(first.id, /^msg_/);
  assert.deepEqual([call.arguments, call.call_id], ['{"a":1}', call.id]);
  assert.deepEqual(reasoning.summary, []);
  assert.deepEqual(body.usage, { ...tokens(3, 4), cost: 0.000011, cost_exact: "0.000011" });
});

for (const usage of [null, undefined, {}, "many", { input_tokens: -1, output_tokens: 1 }]) {
  Deno.test(`responses: with usage ${JSON.stringify(usage)} our own count is charged and reported`, async () => {
    using world = await paidWorld();
    world.upstream.reply(answer({ usage, output: [message("Hello there"), functionCall()] }));
    const { body } = await respond(world);
    const { input_tokens: input, output_tokens: output, total_tokens: total } = body.usage;
    assert.ok(input >= 1 && output >= 7 && total === input + output, JSON.stringify(body.usage));
    const [entry] = await usageOf(world);
    assert.equal(entry?.usage.source, "estimated");
    assert.equal(entry?.usage.outputTokens, output);
    assert.equal(body.usage.cost_exact, entry?.amount);
  });
}

const invalid: [string, string][] = [
  ["HTML", "<html></html>"],
  ["no output", '{"id":"resp_1","object":"response"}'],
  ["output that is no list", '{"output":{}}'],
  ["a response that is queued", JSON.stringify(upstreamResponse({ status: "queued", output: [] }))],
  ["a list", "[]"],
  ["half of it", JSON.stringify(upstreamResponse()).slice(0, 200)],
  ["an empty output without usage", '{"output":[]}'],
];
for (const [what, text] of invalid) {
  Deno.test(`responses: ${what} is 502, and free`, async () => {
    using world = await paidWorld();
    world.upstream.reply(() => new Response(text, { headers: { "content-type": "text/json" } }));
    const { status } = await respond(world);
    assert.equal(status, 502);
    assert.equal((await usageOf(world)).length, 0);
    assert.equal((await world.balance("ada")).held, "0");
  });
}

Deno.test("responses: one that failed is an error, and free", async () => {
  using world = await paidWorld();
  const failed = (code: string, usage: unknown) =>
    answer({
      status: "failed",
      output: [],
      error: { code, message: "It went wrong." },
      usage,
    });
  for (
    const [code, status] of [
      ["server_error", 502],
      ["rate_limit_exceeded", 429],
      ["invalid_prompt", 400],
    ] as const
  ) {
    world.upstream.once(failed(code, null));
    const { status: got, body } = await respond(world);
    assert.equal(got, status, code);
    assert.equal(body.error.message, "It went wrong.");
  }
  world.upstream.once(failed("server_error", tokens(10, 5)));
  assert.equal((await respond(world)).status, 502);
  assert.equal((await usageOf(world)).length, 0);
});

Deno.test("responses: events in place of JSON are put together, with and without their end", async () => {
  using world = await paidWorld();
  const events = upstreamEvents(
    upstreamResponse({ output: [message("Hello there"), functionCall()] }),
  );
  world.upstream.once(() => eventStream(events));
  const whole = await respond(world);
  assert.equal(whole.body.output.length, 2);
  assert.deepEqual(whole.body.usage, { ...tokens(10, 5), ...cost });
  world.upstream.once(() => eventStream(events.slice(0, -1)));
  const cut = await respond(world);
  assert.equal(cut.status, 200);
  assert.equal(cut.body.output[0].content[0].text, "Hello there");
  assert.equal(cut.body.output[1].arguments, '{"city":"Paris"}');
  assert.equal((await usageOf(world))[0]?.usage.source, "estimated");
  world.upstream.once(() => eventStream(events.slice(0, 6)));
  assert.equal((await respond(world)).status, 502);
});

Deno.test("responses: one that is too large to be parsed passes on, with its tools' calls charged", async () => {
  const models = { "test-model": { input: "1", output: "2", toolCalls: { file_search: "0.01" } } };
  using world = await paidWorld({
    project: { pricing: { models }, allowedFields: ["vector_store_ids"] },
    env: { UPSTREAM_BODY_BYTES_MAX: "10000" },
  });
  const call = { id: "fs_1", type: "file_search_call", status: "completed", queries: ["q"] };
  const text = JSON.stringify(upstreamResponse({ output: [call, message("a ".repeat(20_000))] }));
  world.upstream.reply(() => new Response(text));
  const tools = [{ type: "file_search", vector_store_ids: ["vs_1"] }];
  const response = await world.call("/v1/responses", {
    body: { model: "test-model", input: "Hi", user: "ada", tools },
  });
  assert.equal(await response.text(), text);
  assert.equal((await usageOf(world))[0]?.amount, "0.01002");
});

Deno.test("responses: an idempotency key replays the response", async () => {
  using world = await paidWorld();
  world.upstream.reply(answer());
  const options = { headers: { "idempotency-key": "k" } };
  const first = await respond(world, {}, options);
  const again = await respond(world, {}, options);
  assert.deepEqual(again.body, first.body);
  assert.equal(world.upstream.calls.length, 1);
});

Deno.test("responses: OpenAI's client reads text, calls and cost, with the user in a header", async () => {
  using world = await paidWorld();
  world.upstream.once(answer());
  const client = openAiClient(world);
  const said = await client.responses.create({ model: "test-model", input: "Hi" });
  assert.equal(said.output_text, "Hello there");
  world.upstream.once(answer({ output: [functionCall()] }));
  const called = await client.responses.create({
    model: "test-model",
    input: [{ role: "user", content: "Weather?" }],
    tools: [{ type: "function", name: "weather", parameters: {}, strict: false }],
  });
  assert.equal(called.output[0]?.type, "function_call");
  await assert.rejects(
    client.responses.create({ model: "test-model", input: "Hi", background: true }),
    /400 'background' is not supported here/,
  );
});
