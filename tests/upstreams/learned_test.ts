import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { modelReasoningKey } from "../../src/store/keys.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { LearnedFacts } from "../../src/upstreams/learned.ts";
import { createReasoningModels } from "../../src/upstreams/reasoning.ts";
import { chat, chatStream } from "../support/chat.ts";
import { messageObject } from "../support/messages.ts";
import { completion, helloStream, readEvents, usage } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const minute = 60_000;

Deno.test("learned: a fact needs two signs, holds for ten minutes, and is then tried by one call", () => {
  let now = 0;
  const facts = new LearnedFacts({ elapsed: () => now });
  facts.addSign("a", 1);
  assert.equal(facts.find("a"), undefined);
  facts.addSign("a", 1);
  assert.equal(facts.find("a"), 1);
  now = 10 * minute;
  assert.equal(facts.find("a"), undefined, "it is tried");
  assert.equal(facts.find("a"), 1, "by one call");
  now += minute / 2;
  assert.equal(facts.find("a"), undefined, "and again, where that call said nothing");
  facts.addSign("a", 1);
  assert.equal(facts.find("a"), 1);
  facts.forget("a");
  assert.deepEqual([facts.find("a"), facts.isEmpty], [undefined, true]);
});

Deno.test("learned: signs of different values, or an hour apart, do not add up", () => {
  let now = 0;
  const facts = new LearnedFacts({ elapsed: () => now });
  facts.addSign("a", 1);
  facts.addSign("a", 2);
  assert.equal(facts.find("a"), undefined);
  now = 60 * minute;
  facts.addSign("a", 2);
  assert.equal(facts.find("a"), undefined);
  facts.addSign("a", 2);
  assert.equal(facts.find("a"), 2);
});

const upstream = { url: "https://own.test/v1", apiKey: "sk-up" };
const models = { "test-model": { input: "1", output: "2" } };
async function worldOf(project: Body = {}): Promise<World> {
  const world = await createWorld({ project: { upstream, pricing: { models }, ...project } });
  await world.deposit("ada", "10");
  return world;
}
const pathsOf = (world: World) => world.upstream.calls.map(({ url }) => url.split("/v1")[1]);
const notFound = (message: string, more: Body = {}) =>
  Response.json({ error: { message, type: "invalid_request_error", ...more } }, { status: 404 });
const page = () => new Response("404 page not found\n", { status: 404 });

/** Answers in Anthropic's format only, or as told. */
function speaksMessages(world: World, chat: () => Response) {
  world.upstream.reply(({ url }) =>
    url.endsWith("/messages") ? Response.json(messageObject({})) : chat()
  );
}

Deno.test("learned: a format that has answered is not unlearned by a server that restarts", async () => {
  using world = await worldOf();
  assert.equal((await chat(world)).status, 200);
  speaksMessages(world, page);
  for (let calls = 0; calls < 3; calls++) assert.equal((await chat(world)).status, 404);
  world.upstream.reply(() => completion());
  assert.equal((await chat(world)).status, 200);
  assert.ok(pathsOf(world).every((path) => path === "/chat/completions"));
});

const things: [string, Body?][] = [
  ["The image could not be fetched: not found"],
  ["No such File object: file-123"],
  ["Item with id 'rs_1' not found."],
  ["The requested deployment does not exist."],
  ["Not found", { code: "DeploymentNotFound" }],
  ["Not found", { param: "image_url" }],
  ["The model `gpt-9` does not exist"],
];
for (const [message, more] of things) {
  Deno.test(`learned: a 404 that says '${message}' ${JSON.stringify(more ?? {})} reaches the caller as it is`, async () => {
    using world = await worldOf();
    speaksMessages(world, () => notFound(message, more));
    for (let calls = 0; calls < 3; calls++) {
      const { status, body } = await chat(world);
      assert.deepEqual([status, body.error.message], [404, message]);
    }
    assert.ok(pathsOf(world).every((path) => path === "/chat/completions"));
  });
}

const missing = [
  page,
  () => new Response("<html>404 Not Found</html>", { status: 404 }),
  () => new Response(null, { status: 405 }),
  () => new Response(null, { status: 501 }),
  () => Response.json({ detail: "Not Found" }, { status: 404 }),
  () => notFound("Invalid URL (POST /v1/chat/completions)"),
  () => notFound("Unknown request URL: POST /v1/chat/completions.", { code: "unknown_url" }),
  () => notFound("File Not Found", { code: 404, type: "not_found_error" }),
  () => Response.json({ message: "no Route matched with those values" }, { status: 404 }),
];
for (const answer of missing) {
  Deno.test(`learned: a format that is not served is tried again after ten minutes: ${answer}`, async () => {
    using world = await worldOf();
    speaksMessages(world, answer);
    for (let calls = 0; calls < 4; calls++) assert.equal((await chat(world)).status, 200);
    const [own, other] = ["/chat/completions", "/messages"];
    assert.deepEqual(pathsOf(world), [own, other, own, other, other, other]);
    world.upstream.calls.length = 0;
    world.upstream.reply(({ url }) =>
      url.endsWith("/messages") ? Response.json(messageObject({})) : completion()
    );
    await world.clock.advance(10 * minute);
    for (let calls = 0; calls < 2; calls++) assert.equal((await chat(world)).status, 200);
    assert.deepEqual(pathsOf(world), [own, own]);
  });
}

Deno.test("learned: an expired previous_response_id is the upstream's own 404", async () => {
  using world = await worldOf();
  const response = {
    id: "resp_up1",
    object: "response",
    status: "completed",
    output: [{ type: "message", content: [{ type: "output_text", text: "Hi" }] }],
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  };
  world.upstream.once(() => Response.json(response));
  const ask = (more: Body = {}) =>
    world.json("/v1/responses", {
      body: { model: "test-model", input: "Hi", user: "ada", ...more },
    });
  assert.equal((await ask()).status, 200);
  const message = "Previous response with id 'resp_up1' not found.";
  const more = { param: "previous_response_id", code: "previous_response_not_found" };
  world.upstream.reply(({ url }) =>
    url.endsWith("/responses") ? notFound(message, more) : completion()
  );
  const { status, body } = await ask({ previous_response_id: "resp_up1" });
  assert.deepEqual([status, body.error.message, body.error.param], [404, message, more.param]);
});

Deno.test("learned: a bound that a busy server named lowers nobody's own, and is forgotten", async () => {
  using world = await worldOf();
  let most = 300;
  world.upstream.reply(({ body }) =>
    body.max_tokens <= most ? completion() : Response.json({
      error: {
        message: `max_tokens must be at most ${most} while the cluster is busy`,
        param: "max_tokens",
      },
    }, { status: 400 })
  );
  const sent = () => world.upstream.calls.at(-1)?.body.max_tokens;
  for (let calls = 0; calls < 3; calls++) assert.equal((await chat(world)).status, 200);
  assert.equal(sent(), 300);
  most = 100_000;
  assert.equal((await chat(world, { max_tokens: 5_000 })).status, 200);
  assert.equal(sent(), 5_000);
  assert.equal((await chat(world)).status, 200);
  assert.equal(sent(), 16_384, "a longer one has succeeded");
});

Deno.test("learned: stream_options that were refused for a while are asked for again", async () => {
  using world = await worldOf();
  let isDisabled = true;
  world.upstream.reply(({ body }) =>
    body.stream_options && isDisabled
      ? Response.json({
        error: { message: "stream_options is temporarily disabled", param: "stream_options" },
      }, { status: 400 })
      : helloStream()
  );
  const asks = async () => {
    await readEvents(await chatStream(world));
    return "stream_options" in (world.upstream.calls.at(-1)?.body ?? {});
  };
  for (let calls = 0; calls < 3; calls++) assert.equal(await asks(), false);
  isDisabled = false;
  assert.equal(await asks(), false);
  await world.clock.advance(10 * minute);
  assert.equal(await asks(), true);
  assert.equal(await asks(), true);
});

Deno.test("learned: a project's errors teach nothing about another project's upstream of the same URL", async () => {
  using world = await worldOf();
  speaksMessages(world, page);
  for (let calls = 0; calls < 3; calls++) await chat(world);
  using other = await createWorld({
    shareWith: world,
    project: { upstream, pricing: { models } },
    seed: 2,
  });
  await other.deposit("bob", "1");
  other.upstream.reply(() => completion());
  assert.equal((await chat(other, { user: "bob" })).status, 200);
  assert.deepEqual(pathsOf(other), ["/chat/completions"]);
});

const warn = (error: unknown) => assert.fail(String(error));
const hidden = { completion_tokens_details: { reasoning_tokens: 700 } };
const at = (projectId: string) => ({ projectId, name: "default", url: "https://own.test/v1" });

Deno.test("learned: a caller who asks a hybrid model to think teaches nothing about others' calls", async () => {
  const price = { input: "1", output: "2", maxOutputTokens: 2_000 };
  using world = await worldOf({ pricing: { models: { hybrid: price } } });
  world.upstream.reply(() => completion({ usage: usage(10, 800, hidden) }));
  const rows = () => world.deps.kv.list({ prefix: ["reasoning"], limit: 10 });
  await chat(world, { model: "hybrid", reasoning_effort: "high" });
  await chat(world, { model: "hybrid", thinking: { type: "enabled", budget_tokens: 1_024 } });
  assert.equal((await rows()).length, 0);
  await chat(world, { model: "hybrid" });
  assert.equal((await rows()).length, 1);
});

Deno.test("learned: reasoning is known for one project, and unlearned by reports of zero over an hour", async () => {
  using world = await createWorld();
  const { kv } = world.deps;
  const models = createReasoningModels({ kv, clock: world.clock }, warn);
  await models.load(at("p1"), "m");
  models.note(at("p1"), "m", 700);
  assert.deepEqual([models.reasons(at("p1"), "m"), models.reasons(at("p2"), "m")], [true, false]);
  for (let reports = 0; reports < 50; reports++) models.note(at("p1"), "m", 0);
  assert.equal(models.reasons(at("p1"), "m"), true, "not at once");
  await world.clock.advance(30 * minute);
  models.note(at("p1"), "m", 5);
  await world.clock.advance(30 * minute);
  models.note(at("p1"), "m", 0);
  assert.equal(models.reasons(at("p1"), "m"), true, "not where it has reasoned meanwhile");
  await world.clock.advance(60 * minute);
  for (let reports = 0; reports < 19; reports++) models.note(at("p1"), "m", 0);
  assert.deepEqual([models.reasons(at("p1"), "m"), models.mayReason(at("p1"), "m")], [
    false,
    false,
  ]);
  const again = createReasoningModels({ kv, clock: world.clock }, warn);
  await world.until(async () => (await kv.get(modelReasoningKey(at("p1"), "m"))).value !== null);
  await again.load(at("p1"), "m");
  assert.equal(again.mayReason(at("p1"), "m"), false, "it is stored");
});

Deno.test("learned: what 0.9.0 has stored of a URL is read on", async () => {
  using world = await createWorld();
  const { kv } = world.deps;
  const write = emptyWrite();
  write.sets.push({ key: ["reasoning", "https://own.test/v1", "m"], value: toBytes(true) });
  await kv.atomic(write);
  const models = createReasoningModels({ kv, clock: world.clock }, warn);
  await models.load(at("p1"), "m");
  assert.equal(models.reasons(at("p1"), "m"), true);
});
