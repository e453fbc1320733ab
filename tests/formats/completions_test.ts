import assert from "node:assert/strict";
import OpenAI from "openai";
import { usageOf } from "../support/chat.ts";
import { sse } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

const head = { id: "cmpl-up", object: "text_completion", created: 1767225600, model: "test-model" };
const usage = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});
const choice = (text: string, finish: string | null = null, index = 0) => ({
  text,
  index,
  logprobs: null,
  finish_reason: finish,
});
const whole = (text: string, more: Record<string, unknown> = {}) => () =>
  Response.json({ ...head, choices: [choice(text, "stop")], usage: usage(10, 5), ...more });
const streamOf = (...chunks: unknown[]) => () => sse(chunks);

const body = (fields: Record<string, unknown> = {}) => ({
  model: "test-model",
  prompt: "Once upon",
  user: "ada",
  ...fields,
});
const complete = (world: World, fields: Record<string, unknown> = {}) =>
  world.json("/v1/completions", { body: body(fields) });
const completeStream = async (world: World, fields: Record<string, unknown> = {}) =>
  await (await world.call("/v1/completions", { body: body({ stream: true, ...fields }) })).text();
const dataOf = (text: string) =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data));

Deno.test("completions: a whole response is passed on and charged by its usage", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(whole(" a time"));
  const { status, body: got, response } = await complete(world, { seed: null, logprobs: null });
  assert.equal(status, 200);
  assert.deepEqual(got, {
    ...head,
    choices: [choice(" a time", "stop")],
    usage: { ...usage(10, 5), cost: 0.00002, cost_exact: "0.00002" },
  });
  assert.equal(response.headers.get("x-service-cost"), "0.00002");
  const [call] = world.upstream.calls;
  assert.equal(call?.url, "https://upstream.test/v1/completions");
  assert.deepEqual(call?.body, { ...body(), seed: null, logprobs: null, max_tokens: 16 });
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("completions: a stream is metered, and its usage is sent only if requested", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const chunks = [
    { ...head, choices: [choice(" a")], usage: null },
    { ...head, choices: [choice(" time", "stop")], usage: null },
    { ...head, choices: [], usage: usage(10, 5) },
  ];
  world.upstream.reply(streamOf(...chunks));
  const plain = dataOf(await completeStream(world));
  assert.deepEqual(plain.map(({ choices }) => choices), [[choice(" a")], [
    choice(" time", "stop"),
  ]]);
  assert.ok(plain.every((chunk) => !("usage" in chunk)));
  const asked = dataOf(await completeStream(world, { stream_options: { include_usage: true } }));
  assert.deepEqual(asked.at(-1).usage, { ...usage(10, 5), cost: 0.00002, cost_exact: "0.00002" });
  assert.deepEqual((await usageOf(world)).map(({ amount }) => amount), ["0.00002", "0.00002"]);
  assert.deepEqual(world.upstream.calls[0]?.body.stream_options, { include_usage: true });
});

Deno.test("completions: without a balance the text is the message with the link, whole and streamed", async () => {
  using world = await createWorld();
  const { status, body: got, response } = await complete(world);
  assert.equal(status, 200);
  assert.equal(got.object, "text_completion");
  assert.match(got.id, /^cmpl-/);
  assert.match(got.choices[0].text, /https:\/\/farebox\.test\/t\//);
  assert.equal(got.choices[0].finish_reason, "stop");
  assert.equal(got.usage.total_tokens, 0);
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  const chunks = dataOf(await completeStream(world));
  assert.match(chunks[0].choices[0].text, /https:\/\/farebox\.test\/t\//);
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("completions: the hold covers every prompt, and the larger of n and best_of", async () => {
  using world = await createWorld();
  // 3 prompts, 4 candidates of 50 tokens at 0.000002 are 0.0012, plus some tokens of prompt.
  const fields = { prompt: ["a", "b", "c"], n: 2, best_of: 4, max_tokens: 50 };
  world.upstream.reply(whole("x", { usage: usage(3, 600) }));
  await world.deposit("ada", "0.0012");
  // The rest of the balance pays for less, so the cap that is sent upstream is smaller.
  assert.equal((await complete(world, fields)).status, 200);
  const capped = world.upstream.calls[0]?.body.max_tokens;
  assert.ok(capped >= 16 && capped < 50, String(capped));
  await world.deposit("eve", "0.0015");
  await complete(world, { ...fields, user: "eve" });
  assert.equal(world.upstream.calls[1]?.body.max_tokens, 50);
  assert.deepEqual((await usageOf(world, "eve")).map(({ amount }) => amount), ["0.001203"]);
});

Deno.test("completions: where the upstream reports no usage, an echoed prompt is not output", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const prompt = "word ".repeat(100);
  world.upstream.reply(() =>
    Response.json({ ...head, choices: [choice(`${prompt}Hello there`, "stop")] })
  );
  await complete(world, { prompt, echo: true });
  world.upstream.reply(streamOf(
    { ...head, choices: [choice(prompt)] },
    { ...head, choices: [choice("Hello there", "stop")] },
  ));
  await completeStream(world, { prompt, echo: true });
  const entries = await usageOf(world);
  assert.deepEqual(entries.map(({ usage }) => usage.outputTokens), [2, 2]);
  assert.deepEqual(entries.map(({ usage }) => usage.source), ["estimated", "estimated"]);
});

Deno.test("completions: token ids are a prompt, and count as that many tokens", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(() => Response.json({ ...head, choices: [choice("Hi", "stop")] }));
  for (const prompt of [[1, 2, 3], [[1, 2], [3]]]) await complete(world, { prompt });
  assert.deepEqual(world.upstream.calls.map(({ body }) => body.prompt), [[1, 2, 3], [[1, 2], [3]]]);
  assert.deepEqual((await usageOf(world)).map(({ usage }) => usage.uncachedInputTokens), [3, 3]);
});

Deno.test("completions: a malformed request is a 400 that names the field", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (
    const [field, value] of [
      ["prompt", 7],
      ["prompt", ["a", 1]],
      ["prompt", [[1, "a"]]],
      ["prompt", { text: "a" }],
      ["n", 0],
      ["best_of", 1.5],
      ["max_tokens", "16"],
      ["web_search_options", {}],
    ] as const
  ) {
    const { status, body: { error } } = await complete(world, { [field]: value });
    assert.equal(status, 400, JSON.stringify(value));
    assert.equal(error.param, field);
  }
  const { status } = await complete(world, { prompt: Array(2_049).fill("a") });
  assert.equal(status, 400);
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("completions: an idempotency key replays the response, and a null prompt is allowed", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(whole("Hi"));
  const options = { body: body({ prompt: null }), headers: { "idempotency-key": "k" } };
  const first = await world.json("/v1/completions", options);
  const second = await world.json("/v1/completions", options);
  assert.deepEqual(second.body, first.body);
  assert.equal(second.response.headers.get("idempotent-replayed"), "true");
  assert.equal(world.upstream.calls.length, 1);
});

Deno.test("completions: the user may be in the path, and OpenAI's client works", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(whole(" a time"));
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1/ada",
    fetch: (url, init) => Promise.resolve(world.app.fetch(new Request(url, init))),
  });
  const got = await client.completions.create({ model: "test-model", prompt: "Once upon" });
  assert.equal(got.choices[0]?.text, " a time");
  world.upstream.reply(streamOf(
    { ...head, choices: [choice(" a")] },
    { ...head, choices: [choice(" time", "stop")] },
  ));
  const stream = await client.completions.create({
    model: "test-model",
    prompt: "Once upon",
    stream: true,
  });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
  assert.equal(text, " a time");
});
