import assert from "node:assert/strict";
import OpenAI from "openai";
import { operate } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const path = "/v1/moderations";
const result = {
  id: "modr-1",
  model: "omni-moderation-latest",
  results: [{ flagged: false, category_scores: { violence: 0.000000012345678901234567 } }],
};

const moderate = (world: World, body: Body = {}, more: Body = {}) =>
  world.call(path, { body: { input: "Hello", ...body }, ...more });

Deno.test("moderations: they pass on without a user, a price, a balance or an entry", async () => {
  using world = await createWorld();
  const text = JSON.stringify(result);
  world.upstream.once(() =>
    new Response(text, { headers: { "content-type": "application/json" } })
  );
  const response = await moderate(world, { user: "ada" });
  assert.equal(response.status, 200);
  assert.equal(await response.text(), text);
  const [call] = world.upstream.calls;
  assert.equal(call?.url, "https://upstream.test/v1/moderations");
  assert.deepEqual(call?.body, { input: "Hello" });
  assert.equal(call?.headers.get("authorization"), "Bearer upstream-secret-key");
  assert.deepEqual(await world.activities("ada"), []);
});

Deno.test("moderations: a key is needed, with the scope of a chat, and its models count", async () => {
  using world = await createWorld();
  world.upstream.reply(() => Response.json(result));
  assert.equal((await moderate(world, {}, { key: null })).status, 401);
  assert.equal((await moderate(world, { model: "any" })).status, 200);
  assert.deepEqual(world.upstream.calls[0]?.body, { input: "Hello", model: "any" });
  const bound = await operate(world, "/keys", { body: { scopes: ["chat"], models: ["gpt-4o"] } });
  const key = bound.body.apiKey;
  assert.equal((await moderate(world, { model: "any" }, { key })).status, 403);
  assert.equal((await moderate(world, { model: "gpt-4o" }, { key })).status, 200);
  assert.equal((await moderate(world, {}, { key })).status, 200);
  const money = await operate(world, "/keys", { body: { scopes: ["money"] } });
  assert.equal((await moderate(world, {}, { key: money.body.apiKey })).status, 403);
});

Deno.test("moderations: the rate limits of keys and users apply", async () => {
  for (const limits of [{ key: { requestsPerMinute: 1 } }, { user: { requestsPerMinute: 1 } }]) {
    using world = await createWorld({ project: { limits } });
    world.upstream.reply(() => Response.json(result));
    assert.equal((await moderate(world, { user: "ada" })).status, 200);
    const limited = await moderate(world, { user: "ada" });
    assert.equal(limited.status, 429);
    assert.ok(limited.headers.has("retry-after"));
    assert.equal(world.upstream.calls.length, 1);
  }
});

Deno.test("moderations: an upstream without them is named as such", async () => {
  using world = await createWorld();
  for (const status of [404, 405, 501]) {
    world.upstream.once(() => new Response("Not Found", { status }));
    const response = await moderate(world);
    assert.equal(response.status, 404);
    assert.equal((await response.json()).error.code, "endpoint_not_served");
  }
});

Deno.test("moderations: what is no moderation is 502, and errors pass on without the key", async () => {
  using world = await createWorld();
  for (const body of ["<html>", "[]", "", '{"error": {"message": "?"}}']) {
    world.upstream.once(() => new Response(body));
    assert.equal((await moderate(world)).status, 502);
  }
  const message = "bad upstream-secret-key";
  world.upstream.once(() => Response.json({ error: { message } }, { status: 400 }));
  const refused = await moderate(world);
  assert.equal(refused.status, 400);
  assert.equal((await refused.json()).error.message, "bad [redacted]");
});

const refusals: [string, Body, string][] = [
  ["no input", { input: undefined }, "input"],
  ["an empty list", { input: [] }, "input"],
  ["an unknown field", { stream: true }, "stream"],
];
for (const [what, body, param] of refusals) {
  Deno.test(`moderations: ${what} is refused with the field's name`, async () => {
    using world = await createWorld();
    const response = await moderate(world, body);
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.param, param);
  });
}

Deno.test("moderations: OpenAI's client works, also with the user in the path", async () => {
  using world = await createWorld();
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1/ada",
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
  });
  world.upstream.once(() => Response.json(result));
  const moderation = await client.moderations.create({ input: "Hello" });
  assert.equal(moderation.results[0]?.flagged, false);
});
