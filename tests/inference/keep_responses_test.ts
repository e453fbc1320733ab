import assert from "node:assert/strict";
import { storedRows } from "../support/books.ts";
import { chat } from "../support/chat.ts";
import { hiddenFields, signedIn } from "../support/console.ts";
import { completion } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const prompt = "my secret prompt";
const answer = "my secret answer";
const keyed = { headers: { "idempotency-key": "ask-1" } };
const keyOf = (char: string) => btoa(char.repeat(32));
const chatOnly = { upstream: { url: "https://upstream.test/v1", formats: ["chat"] } };
const caching = { responseCache: { enabled: true, maxAgeSeconds: 3600, costFactor: "0.1" } };

const ask = (world: World, body: Body = {}, user = "ada") =>
  world.json("/v1/responses", { body: { model: "test-model", user, input: prompt, ...body } });

/** A world whose upstream keeps nothing, and always says the same. */
async function worldOf(options: Parameters<typeof createWorld>[0] = {}): Promise<World> {
  const project = { ...chatOnly, ...caching, ...options.project };
  const world = await createWorld({ ...options, project });
  world.upstream.reply(() => {
    const message = { role: "assistant", content: answer };
    return completion({ choices: [{ index: 0, message, finish_reason: "stop" }] });
  });
  if (!options.shareWith) await world.deposit("ada", "1");
  return world;
}

/** Everything that keeps a text: a turn, a response under a key, and a cached one. */
async function keepAll(world: World): Promise<Body> {
  const first = await ask(world);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const messages = [{ role: "user", content: prompt }];
  await chat(world, { messages }, keyed);
  return first.body;
}

/** The kinds of rows in which one of the texts can be read. */
async function kindsWithText(world: World): Promise<string[]> {
  await world.app.flush();
  const found = new Set<string>();
  for (const { key, value } of await storedRows(world)) {
    const text = new TextDecoder().decode(value ?? undefined);
    if (text.includes(prompt) || text.includes(answer)) found.add(String(key[0]));
  }
  return [...found].sort();
}

const kinds = async (world: World) =>
  new Set((await storedRows(world)).map(({ key }) => String(key[0])));

const sameKey = (world: World, char: string) =>
  worldOf({ shareWith: world, env: { SECRETS_KEY: char.split("").map(keyOf).join(",") } });

Deno.test("kept texts: with SECRETS_KEY no prompt and no answer stands in clear in any row", async () => {
  using world = await worldOf();
  const { id } = await keepAll(world);
  const present = await kinds(world);
  for (const kind of ["kept_turn", "chat_replay", "cached_response"]) {
    assert.ok(present.has(kind), kind);
  }
  assert.deepEqual(await kindsWithText(world), []);
  const next = await ask(world, { previous_response_id: id, input: "And?" });
  assert.equal(next.status, 200, JSON.stringify(next.body));
  assert.deepEqual(
    world.upstream.calls.at(-1)?.body.messages.map(({ content }: Body) => content),
    [prompt, answer, "And?"],
  );
});

Deno.test("kept texts: without SECRETS_KEY they are kept in clear, and work", async () => {
  using world = await worldOf({ env: { SECRETS_KEY: "" } });
  const { id } = await keepAll(world);
  assert.deepEqual(await kindsWithText(world), ["cached_response", "chat_replay", "kept_turn"]);
  assert.equal((await ask(world, { previous_response_id: id, input: "And?" })).status, 200);
  const again = await chat(world, { messages: [{ role: "user", content: prompt }] }, keyed);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
});

Deno.test("kept texts: after a rotation with the old key they read on", async () => {
  using world = await worldOf({ env: { SECRETS_KEY: keyOf("a") } });
  const { id } = await keepAll(world);
  using rotated = await sameKey(world, "ba");
  const next = await ask(rotated, { previous_response_id: id, input: "And?" });
  assert.equal(next.status, 200, JSON.stringify(next.body));
  const again = await chat(rotated, { messages: [{ role: "user", content: prompt }] }, keyed);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
  const cached = await chat(rotated, { messages: [{ role: "user", content: prompt }] });
  assert.equal(cached.response.headers.get("x-service-cache"), "hit");
});

Deno.test("kept texts: without the key that encrypted them each has a clear answer, and none is 500", async () => {
  using world = await worldOf({ env: { SECRETS_KEY: keyOf("a") } });
  const { id, output: [{ id: item }] } = await keepAll(world);
  using other = await sameKey(world, "b");
  const input = [{ type: "item_reference", id: item }, { role: "user", content: "And?" }];
  for (const more of [{ previous_response_id: id }, { input }]) {
    const { status, body: { error } } = await ask(other, more);
    assert.deepEqual([status, error.code], [400, "previous_response_not_found"]);
    assert.match(error.message, /no longer kept/);
  }
  const messages = [{ role: "user", content: prompt }];
  const before = await other.balance("ada");
  const again = await chat(other, { messages }, keyed);
  assert.deepEqual([again.status, again.body.error.code], [422, "stored_response_unreadable"]);
  assert.match(again.body.error.message, /SECRETS_KEY/);
  assert.deepEqual(await other.balance("ada"), before, "it was charged once, and is not again");
  const miss = await chat(other, { messages });
  assert.equal(miss.response.headers.get("x-service-cache"), "miss");
});

Deno.test("kept texts: turns of 0.9.0, which stand in clear, read on", async () => {
  using world = await worldOf();
  const { id } = await ask(world).then(({ body }) => body);
  const key = ["kept_turn", world.projectId, id];
  const input = [{ type: "message", role: "user", content: "Older" }];
  const output = [{ type: "message", role: "assistant", content: [] }];
  const turn = { previous: null, input, user: "ada", output, expiresAt: world.clock.now() + 1e9 };
  const value = new TextEncoder().encode(JSON.stringify(turn));
  await world.deps.committer.commit({ checks: [], sets: [{ key, value }], deletes: [] });
  const next = await ask(world, { previous_response_id: id, input: "And?" });
  assert.equal(next.status, 200, JSON.stringify(next.body));
  assert.equal(world.upstream.calls.at(-1)?.body.messages[0].content, "Older");
});

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";
  Deno.test(`keepResponses off: of a ${how} turn nothing is kept, and its id says which setting`, async () => {
    using world = await worldOf({ project: { keepResponses: "off", responseCache: {} } });
    const response = await world.call("/v1/responses", {
      body: { model: "test-model", user: "ada", input: prompt, stream },
      keepClock: true,
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.match(text, /"store":false/);
    const present = await kinds(world);
    assert.ok(!present.has("kept_turn") && !present.has("kept_id"));
    const id = /"id":"(resp_\w+)"/.exec(text)?.[1];
    const item = /"id":"(msg_\w+)"/.exec(text)?.[1];
    const input = [{ type: "item_reference", id: item }, { role: "user", content: "And?" }];
    for (const more of [{ previous_response_id: id }, { input }]) {
      const { status, body: { error } } = await ask(world, more);
      assert.equal(status, 400);
      assert.match(error.message, /'keepResponses' is "off"/);
    }
    assert.equal((await ask(world, { store: false })).status, 200);
  });
}

Deno.test("keepResponses off: ids of what the upstream keeps are known, and can be continued", async () => {
  using world = await createWorld({ project: { keepResponses: "off" } });
  await world.deposit("ada", "1");
  const usage = { input_tokens: 5, output_tokens: 1, total_tokens: 6 };
  const output = [{ id: "msg_1", type: "message", role: "assistant", status: "completed" }];
  world.upstream.reply(() =>
    Response.json({ id: "resp_1", object: "response", status: "completed", output, usage })
  );
  assert.equal((await ask(world)).status, 200);
  const next = await ask(world, { previous_response_id: "resp_1" });
  assert.equal(next.status, 200, JSON.stringify(next.body));
  assert.equal(world.upstream.calls.at(-1)?.body.previous_response_id, "resp_1");
  assert.deepEqual(await kindsWithText(world), []);
});

Deno.test("keepResponses: turning it off removes the turns that were kept, of this project only", async () => {
  using world = await worldOf();
  const { id } = await keepAll(world);
  const other = await world.makeProject(chatOnly);
  const deposit = { key: other.apiKey, body: { user: "ada", amount: "1" } };
  await world.json("/v1/user/balance/deposit", deposit);
  const body = { model: "test-model", user: "ada", input: prompt };
  await world.json("/v1/responses", { key: other.apiKey, body });
  const { status } = await operate(world, "", { method: "PATCH", body: { keepResponses: "off" } });
  assert.equal(status, 200);
  const refused = await ask(world, { previous_response_id: id });
  assert.match(refused.body.error.message, /keepResponses/, "at once");
  await world.app.sweep();
  const turns = (await storedRows(world)).filter(({ key }) => key[0] === "kept_turn");
  assert.deepEqual(turns.map(({ key }) => key[1]), [other.projectId]);
});

Deno.test("keepResponses: the console's form changes it, the audit trail says so, and others are 400", async () => {
  using world = await worldOf();
  const visitor = await signedIn(world);
  const { html } = await visitor.get("settings");
  assert.match(html, /name="keepResponses"[^>]* checked/);
  const form = {
    ...hiddenFields(html, "/settings"),
    name: "Test",
    amounts: "5",
    billingEvents: "on",
  };
  await visitor.submit("settings", form);
  const { body } = await operate(world, "", { method: "GET" });
  assert.equal(body.project.keepResponses, "off", JSON.stringify(body));
  const trail = await operate(world, "/audit", { method: "GET" });
  assert.match(JSON.stringify(trail.body), /"keepResponses":{"from":(null|"on"),"to":"off"}/);
  const wrong = await operate(world, "", { method: "PATCH", body: { keepResponses: false } });
  assert.equal(wrong.status, 400);
});
