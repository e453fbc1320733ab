import assert from "node:assert/strict";
import { message, openAiClient, respond, upstreamResponse } from "../../support/responses.ts";
import { type Body, type CallOptions, createWorld, type World } from "../../support/world.ts";

const path = "/v1/responses/input_tokens";
const counted = (tokens: number) => ({ object: "response.input_tokens", input_tokens: tokens });

function count(world: World, fields: Body = {}, more: CallOptions = {}) {
  const body = { model: "test-model", input: "Hi", user: "ada", ...fields };
  return world.json(path, { body, ...more });
}

Deno.test("input_tokens: the upstream counts what it knows, and nothing is charged, with or without money", async () => {
  for (const balance of ["1", null]) {
    using world = await createWorld();
    if (balance) await world.deposit("ada", balance);
    world.upstream.once(() => Response.json({ ...counted(42), other: 1 }));
    const fields = { instructions: "Be kind.", truncation: "auto", metadata: { a: "b" } };
    const { status, body } = await count(world, { ...fields, stream: true, store: false });
    assert.deepEqual([status, body], [200, counted(42)]);
    const [call] = world.upstream.calls;
    assert.equal(call?.url, "https://upstream.test/v1/responses/input_tokens");
    const { metadata: _, ...sent } = fields;
    assert.deepEqual(call?.body, { model: "test-model", input: "Hi", ...sent });
    if (balance) assert.equal((await world.balance("ada")).balance, balance);
  }
});

for (const served of ["/v1/ada/responses/input_tokens", `${path}?beta=true&user=ada`]) {
  Deno.test(`input_tokens: it is served at ${served}`, async () => {
    using world = await createWorld();
    world.upstream.once(() => Response.json(counted(42)));
    const { body } = await world.json(served, { body: { model: "test-model", input: "Hi" } });
    assert.deepEqual(body, counted(42));
  });
}

Deno.test("input_tokens: OpenAI's client reads it", async () => {
  using world = await createWorld();
  world.upstream.once(() => Response.json(counted(42)));
  const asked = { model: "test-model", input: "Hi" };
  const { input_tokens: tokens } = await openAiClient(world).responses.inputTokens.count(asked);
  assert.equal(tokens, 42);
});

for (const status of [404, 405, 501]) {
  Deno.test(`input_tokens: an upstream without it (${status}) is asked twice; then we count`, async () => {
    using world = await createWorld();
    world.upstream.reply(() => Response.json({ error: { message: "Not Found" } }, { status }));
    for (let asked = 0; asked < 3; asked++) {
      const { status: seen, body } = await count(world, { input: "word ".repeat(1_000) });
      assert.equal(seen, 200, JSON.stringify(body));
      assert.ok(body.input_tokens > 1_000 && body.input_tokens < 1_100, `${body.input_tokens}`);
    }
    assert.equal(world.upstream.calls.length, 2);
  });
}

Deno.test("input_tokens: an upstream that is known to speak only chat is not asked", async () => {
  using world = await createWorld({
    project: { upstream: { url: "https://own.test/v1", formats: ["chat"] } },
  });
  const { status, body } = await count(world);
  assert.deepEqual([status, body.object], [200, "response.input_tokens"]);
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("input_tokens: what came before counts for its own user, and is 400 for others", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => Response.json(upstreamResponse({ output: [message("Hello")] })));
  const { body: before } = await respond(world);
  const continued = { previous_response_id: before.id };
  world.upstream.once(() => Response.json(counted(42)));
  assert.deepEqual((await count(world, continued)).body, counted(42));
  assert.equal(world.upstream.calls.at(-1)?.body.previous_response_id, before.id);
  const asked = world.upstream.calls.length;
  const other = await count(world, { ...continued, user: "bob" });
  assert.deepEqual([other.status, other.body.error.code], [400, "previous_response_not_found"]);
  assert.equal(world.upstream.calls.length, asked);
});

Deno.test("input_tokens: a turn that is kept here counts whole", async () => {
  using world = await createWorld({
    project: { upstream: { url: "https://own.test/v1", formats: ["chat"] } },
  });
  await world.deposit("ada", "1");
  const { body: before } = await respond(world, { input: "word ".repeat(500) });
  const { status, body } = await count(world, { previous_response_id: before.id });
  assert.equal(status, 200, JSON.stringify(body));
  assert.ok(body.input_tokens > 500 && body.input_tokens < 700, `${body.input_tokens}`);
});

Deno.test("input_tokens: what a response is refused for, its count is refused for", async () => {
  using world = await createWorld();
  const refused: [number, Body][] = [
    [404, { conversation: "conv_1" }],
    [400, { input: 5 }],
    [400, { api_base: "https://elsewhere" }],
    [400, { input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] }],
  ];
  for (const [status, fields] of refused) assert.equal((await count(world, fields)).status, status);
  assert.equal((await count(world, {}, { key: "sk_wrong" })).status, 401);
  assert.equal(world.upstream.calls.length, 0);
});
