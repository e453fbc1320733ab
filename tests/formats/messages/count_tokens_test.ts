import assert from "node:assert/strict";
import { until } from "../../support/chat.ts";
import { asAda, messageBody, messagesPath, messagesWorld } from "../../support/messages.ts";
import {
  adminKey,
  type Body,
  type CallOptions,
  createWorld,
  type World,
} from "../../support/world.ts";

const path = `${messagesPath}/count_tokens`;
const price = { input: "1", output: "1" };

function count(world: World, fields: Body = {}, more: CallOptions = {}) {
  const { max_tokens: _, ...body } = messageBody(fields);
  return world.json(path, { body, headers: asAda, ...more });
}

Deno.test("count_tokens: the upstream counts, and nothing is charged, with or without money", async () => {
  for (const balance of ["1", null]) {
    using world = await messagesWorld({ balance });
    world.upstream.once(() => Response.json({ input_tokens: 42, other: 1 }));
    const headers = { "anthropic-beta": "token-counting" };
    const { status, body, response } = await count(world, { system: "Be kind." }, { headers });
    assert.deepEqual([status, body], [200, { input_tokens: 42 }]);
    assert.ok(response.headers.get("request-id"));
    const [call] = world.upstream.calls;
    assert.equal(call?.url, "https://upstream.test/v1/messages/count_tokens");
    assert.equal(call?.headers.get("x-api-key"), "upstream-secret-key");
    assert.equal(call?.headers.get("anthropic-beta"), "token-counting");
    const { max_tokens: _, ...sent } = messageBody({ system: "Be kind." });
    assert.deepEqual(call?.body, sent);
    if (balance) assert.equal((await world.balance("ada")).balance, balance);
  }
});

for (
  const below of ["/v1/ada/messages/count_tokens", "/v1/ada/v1/messages/count_tokens?beta=true"]
) {
  Deno.test(`count_tokens: it is served at ${below}`, async () => {
    using world = await messagesWorld();
    world.upstream.once(() => Response.json({ input_tokens: 42 }));
    const { body } = await world.json(below, { body: messageBody() });
    assert.deepEqual(body, { input_tokens: 42 });
  });
}

for (const status of [404, 405, 501]) {
  Deno.test(`count_tokens: an upstream without it (${status}) is asked twice; then we count`, async () => {
    using world = await messagesWorld();
    world.upstream.reply(() =>
      Response.json({ error: { message: "Not Found", type: "x" } }, { status })
    );
    const { status: seen, body } = await count(world);
    assert.equal(seen, 200);
    assert.ok(body.input_tokens > 5 && body.input_tokens < 20, `${body.input_tokens}`);
    const text = "word ".repeat(1_000);
    const long = await count(world, { messages: [{ role: "user", content: text }] });
    assert.ok(long.body.input_tokens > 1_000 && long.body.input_tokens < 1_100);
    assert.equal((await count(world)).status, 200);
    assert.equal(world.upstream.calls.length, 2);
    await world.clock.advance(10 * 60_000);
    world.upstream.reply(() => Response.json({ input_tokens: 42 }));
    assert.deepEqual((await count(world)).body, { input_tokens: 42 });
  });
}

Deno.test("count_tokens: an upstream that is known to speak only chat is not asked", async () => {
  using world = await messagesWorld({
    project: { upstream: { url: "https://own.test/v1", formats: ["chat"] } },
  });
  const { status, body } = await count(world);
  assert.equal(status, 200);
  assert.ok(body.input_tokens > 5);
  assert.equal(world.upstream.calls.length, 0);
});

for (const answer of [{}, [], { input_tokens: -1 }, { input_tokens: "many" }, { choices: [] }]) {
  Deno.test(`count_tokens: where the upstream answers ${JSON.stringify(answer)}, we count`, async () => {
    using world = await messagesWorld();
    world.upstream.once(() => Response.json(answer));
    const { status, body } = await count(world);
    assert.equal(status, 200);
    assert.ok(body.input_tokens > 5);
  });
}

Deno.test("count_tokens: errors of the upstream are the caller's in Anthropic's shape", async () => {
  using world = await messagesWorld();
  const error = { type: "invalid_request_error", message: "No." };
  world.upstream.once(() => Response.json({ type: "error", error }, { status: 400 }));
  const refused = await count(world);
  assert.deepEqual([refused.status, refused.body.error.message], [400, "No."]);
  world.upstream.once(() => Response.json({ type: "error", error }, { status: 401 }));
  assert.equal((await count(world)).status, 502);
  const missing = { type: "not_found_error", message: "model: claude-9" };
  world.upstream.once(() => Response.json({ type: "error", error: missing }, { status: 404 }));
  assert.equal((await count(world)).status, 404);
});

Deno.test("count_tokens: what a message is refused for, its count is refused for", async () => {
  using world = await messagesWorld();
  const refused: [number, Body][] = [
    [404, { model: "other" }],
    [400, { messages: [] }],
    [400, { api_base: "https://elsewhere" }],
    [400, { thread: { type: "create" } }],
    [400, {
      messages: [{
        role: "user",
        content: [{ type: "image", source: { type: "file", file_id: "a" } }],
      }],
    }],
  ];
  for (const [status, fields] of refused) assert.equal((await count(world, fields)).status, status);
  assert.equal((await count(world, {}, { key: "sk_wrong" })).status, 401);
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("count_tokens: a key's rate limit holds, and so does a user's share of our own counting", async () => {
  using limited = await messagesWorld({ project: { limits: { key: { requestsPerMinute: 1 } } } });
  limited.upstream.reply(() => Response.json({ input_tokens: 42 }));
  assert.equal((await count(limited)).status, 200);
  assert.equal((await count(limited)).status, 429);
  using world = await messagesWorld();
  world.upstream.reply(() => new Response("", { status: 404 }));
  const messages = [{ role: "user", content: "a b c d e f ".repeat(400_000) }];
  const statuses: number[] = [];
  for (let asked = 0; asked < 6; asked++) statuses.push((await count(world, { messages })).status);
  assert.ok(statuses.includes(429), `${statuses}`);
});

Deno.test("count_tokens: without an upstream it is 502", async () => {
  const env = { UPSTREAM_URL: "", UPSTREAM_API_KEY: "" };
  using world = await createWorld({ env, project: { pricing: { models: { "*": price } } } });
  const { status, body } = await count(world);
  assert.deepEqual([status, body.error.code], [502, "upstream_unavailable"]);
});

Deno.test("count_tokens: an upstream that is silent is given up after half a minute", async () => {
  using world = await messagesWorld();
  world.upstream.once(() => new Promise(() => {}));
  const { status, body } = await until(world, count(world));
  assert.deepEqual([status, body.error.type], [504, "timeout_error"]);
});

Deno.test("count_tokens: ever new users share what is counted for their key and their project", async () => {
  using world = await messagesWorld({
    project: { upstream: { url: "https://own.test/v1", formats: ["chat"] } },
  });
  const long = { messages: [{ role: "user", content: "word ".repeat(200_000) }] };
  const other = await world.json(`/v1/admin/projects/${world.projectId}/keys`, {
    key: adminKey,
    body: { name: "Other" },
  });
  const seen: Record<string, number[]> = {};
  for (const key of [world.apiKey, other.body.apiKey ?? other.body.key]) {
    for (let n = 0; n < 8; n++) {
      const { status, response } = await count(world, long, {
        key,
        headers: { "x-service-user": `user-${key.slice(-4)}-${n}` },
      });
      if (status === 429) assert.ok(response.headers.get("retry-after"));
      (seen[key] ??= []).push(status);
    }
  }
  for (const statuses of Object.values(seen)) {
    assert.equal(statuses[0], 200, statuses.join());
    assert.equal(statuses.at(-1), 429, statuses.join());
    assert.ok(statuses.filter((status) => status === 200).length <= 6, statuses.join());
  }
  await world.clock.advance(60_000);
  assert.equal((await count(world, long)).status, 200);
});
