import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import type { ApiKey } from "../../src/projects/schema.ts";
import { apiKeyKey, apiKeysPrefix } from "../../src/store/keys.ts";
import { chatBody, chatPath, storedRows } from "../support/books.ts";
import { forget } from "../support/forget.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";
import { createScriptedStore } from "../support/store.ts";

const depositPath = "/v1/user/balance/deposit";

function keys(world: World, path = "", options: Record<string, unknown> = {}) {
  const { projectId } = world;
  return world.json(`/v1/admin/projects/${projectId}/keys${path}`, { key: adminKey, ...options });
}

async function makeKey(world: World, settings: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await keys(world, "", { body: settings });
  assert.equal(status, 201, JSON.stringify(body));
  return body.apiKey;
}

Deno.test("api keys: a key is shown once, and the list only distinguishes them", async () => {
  using world = await createWorld();
  const made = await keys(world, "", { body: { name: "browser", scopes: ["chat"] } });
  assert.equal(made.status, 201);
  const { apiKey, key } = made.body;
  assert.match(apiKey, /^sk_[0-9A-Za-z]{43}$/);
  assert.deepEqual({ ...key, id: null }, {
    id: null,
    name: "browser",
    scopes: ["chat"],
    defaultUser: null,
    user: null,
    expiresAt: null,
    models: null,
    budget: null,
    createdBy: "operator",
    projectId: world.projectId,
    suffix: apiKey.slice(-4),
    createdAt: "2026-01-01T00:00:00.000Z",
    revokedAt: null,
  });
  const { status, body } = await keys(world);
  assert.equal(status, 200);
  assert.equal(body.keys.length, 3);
  assert.deepEqual(body.keys[2], key);
  assert.ok(!JSON.stringify(body).includes(apiKey.slice(0, -4)));
  for (const row of await storedRows(world)) {
    const text = JSON.stringify(row.key) + new TextDecoder().decode(row.value ?? new Uint8Array());
    assert.ok(!text.includes(apiKey), "stored only as its SHA-256");
  }
});

Deno.test("api keys: all are listed and read, however many there are", async () => {
  using world = await createWorld();
  const { projectId, deps: { kv } } = world;
  const [first] = await kv.list({ prefix: apiKeysPrefix(projectId), limit: 1 });
  const key = fromBytes<ApiKey>(first?.value ?? assert.fail());
  for (let n = 0; n < 1_000; n += 100) {
    const ids = Array.from({ length: 100 }, (_, at) => `key_${String(n + at).padStart(26, "0")}`);
    const sets = ids.map((id) => ({
      key: apiKeyKey(projectId, id),
      value: toBytes({ ...key, id }),
    }));
    await kv.atomic({ checks: [], deletes: [], sets });
  }
  const made = await keys(world, "", { body: { scopes: ["chat"], user: "ada" } });
  const listed: Body[] = (await keys(world)).body.keys;
  assert.deepEqual([listed.length, listed.at(-1)?.id], [1_003, made.body.key.id]);
  const { status, body } = await forget(world, {}, "ada");
  assert.deepEqual([status, body.error.code], [400, "user_has_keys"]);
});

const scopeTable: [scopes: string[], allowed: Record<string, boolean>][] = [
  [["chat"], { chat: true, models: true, deposit: false, balance: false }],
  [["money"], { chat: false, models: false, deposit: true, balance: true }],
  [["webhooks"], { chat: false, models: false, deposit: false, balance: false }],
  [["chat", "money"], { chat: true, models: true, deposit: true, balance: true }],
];

Deno.test("api keys: a key can do what its scopes allow, and else is 403", async () => {
  using world = await createWorld();
  for (const [scopes, allowed] of scopeTable) {
    const key = await makeKey(world, { scopes });
    const answers = {
      chat: await world.json(chatPath, { key, body: chatBody("ada") }),
      models: await world.json("/v1/models", { key }),
      deposit: await world.json(depositPath, { key, body: { user: "bob", amount: "1" } }),
      balance: await world.json("/v1/user/balance?user=ada", { key }),
    };
    for (const [what, { status, body }] of Object.entries(answers)) {
      assert.equal(status, allowed[what] ? 200 : 403, `${scopes} ${what}`);
      if (!allowed[what]) assert.equal(body.error.code, "insufficient_scope");
    }
  }
  assert.equal((await world.balance("bob")).balance, "2");
});

/** Every route, by the scope that it requires. */
const routesByScope: Record<string, [method: string, path: string][]> = {
  chat: [["POST", chatPath], ["POST", "/v1/ada/chat/completions"], ["GET", "/v1/models"], [
    "GET",
    "/v1/ada/models/x",
  ]],
  money: [
    ["GET", "/v1/user/balance?user=ada"],
    ["GET", "/v1/user/balance/topup?user=ada"],
    ["POST", depositPath],
    ["POST", "/v1/user/charge"],
    ["POST", "/v1/user/refund"],
    ["GET", "/v1/user/connect?user=ada"],
    ["GET", "/v1/user/disconnect?user=ada"],
    ["POST", "/v1/user/disconnect?user=ada"],
    ["GET", "/v1/user/activities?user=ada"],
  ],
  webhooks: [
    ["GET", "/v1/webhooks/subscriptions"],
    ["POST", "/v1/webhooks/subscriptions"],
    ["GET", "/v1/webhooks/subscriptions/sub_1"],
    ["DELETE", "/v1/webhooks/subscriptions/sub_1"],
    ["GET", "/v1/webhooks/logs"],
  ],
};

Deno.test("api keys: every endpoint refuses a key without its scope", async () => {
  using world = await createWorld();
  for (const scope of Object.keys(routesByScope)) {
    const key = await makeKey(world, { scopes: [scope] });
    for (const [wanted, ways] of Object.entries(routesByScope)) {
      for (const [method, path] of ways) {
        const options = method === "POST" ? { body: {} } : {};
        const { body } = await world.json(path, { key, method, ...options });
        const isShut = body.error?.code === "insufficient_scope";
        assert.equal(isShut, wanted !== scope, `${scope}: ${method} ${path}`);
      }
    }
  }
});

Deno.test("api keys: created without scopes, a key has them all", async () => {
  using world = await createWorld();
  const { body } = await keys(world, "", { body: {} });
  assert.deepEqual(body.key.scopes, ["chat", "money", "webhooks"]);
});

Deno.test("api keys: a key bound to a user acts only for that user", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await world.deposit("bob", "1");
  const key = await makeKey(world, { scopes: ["chat"], user: "ada" });
  const { user: _user, ...unnamed } = chatBody("ada");
  assert.equal((await world.json(chatPath, { key, body: unnamed })).status, 200);
  assert.equal((await world.json(chatPath, { key, body: chatBody("ada") })).status, 200);
  const both = await makeKey(world, { scopes: ["chat"], user: "ada", defaultUser: "bob" });
  assert.equal((await world.json(chatPath, { key: both, body: unnamed })).status, 200);
  const foreign = [
    world.json(chatPath, { key, body: chatBody("bob") }),
    world.json(chatPath, { key, body: unnamed, headers: { "x-service-user": "bob" } }),
    world.json("/v1/bob/chat/completions", { key, body: unnamed }),
  ];
  for (const { status, body } of await Promise.all(foreign)) {
    assert.equal(status, 403);
    assert.equal(body.error.param, "user");
  }
  assert.equal((await world.balance("ada")).balance, "0.99994");
  assert.equal((await world.balance("bob")).balance, "1");
});

Deno.test("api keys: a default user is used where none is named", async () => {
  using world = await createWorld();
  const key = await makeKey(world, { defaultUser: "ada" });
  await world.json(depositPath, { key, body: { amount: "1" } });
  await world.json(depositPath, { key, body: { user: "bob", amount: "2" } });
  assert.equal((await world.balance("ada")).balance, "1");
  assert.equal((await world.balance("bob")).balance, "2");
  assert.equal((await world.json("/v1/user/balance", { key })).body.user, "ada");
});

const badKeys: [label: string, settings: Record<string, unknown>][] = [
  ["an unknown scope", { scopes: ["admin"] }],
  ["no scope", { scopes: [] }],
  ["a scope as text", { scopes: "chat" }],
  ["a bound key with money", { scopes: ["chat", "money"], user: "ada" }],
  ["a bound key with all scopes", { user: "ada" }],
  ["an empty user", { scopes: ["chat"], user: "" }],
  ["a user with a control character", { scopes: ["chat"], user: "a\u0000b" }],
  ["a default user that is too long", { defaultUser: "a".repeat(129) }],
  ["a default user of too many characters of two units", { defaultUser: "😀".repeat(129) }],
  ["a default user that is a number", { defaultUser: 5 }],
  ["a default user that is no Unicode", { defaultUser: "\ud800" }],
  ["an unknown field", { expires: "never" }],
  ["a name that is too long", { name: "n".repeat(129) }],
];

Deno.test("api keys: invalid settings are 400, and create no key", async () => {
  using world = await createWorld();
  for (const [label, body] of badKeys) {
    const { status } = await keys(world, "", { body });
    assert.equal(status, 400, label);
  }
  assert.equal((await keys(world)).body.keys.length, 2);
});

Deno.test("api keys: a revoked one stops at once here, and within a second elsewhere", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const { body: { key, apiKey } } = await keys(world, "", { body: {} });
  const status = async (at: World) =>
    (await at.json("/v1/user/balance?user=ada", { key: apiKey })).status;
  assert.deepEqual([await status(world), await status(other)], [200, 200]);
  const revoked = await keys(world, `/${key.id}`, { method: "DELETE" });
  assert.equal(revoked.status, 200);
  assert.equal(revoked.body.revoked, true);
  assert.notEqual(revoked.body.key.revokedAt, null);
  assert.equal(await status(world), 401);
  await world.clock.advance(1000);
  assert.equal(await status(other), 401);
  const again = await keys(world, `/${key.id}`, { method: "DELETE" });
  assert.deepEqual(again.body, revoked.body);
  assert.equal((await world.json("/v1/user/balance?user=ada")).status, 200, "others go on");
});

Deno.test("api keys: another project's key, user and records do not exist", async () => {
  using world = await createWorld();
  const other = await world.makeProject();
  await world.deposit("ada", "5");
  const [mine] = await world.activities("ada");
  const listed = await world.json("/v1/user/activities?user=ada", { key: other.apiKey });
  assert.deepEqual(listed.body.activities, []);
  const refund = await world.json("/v1/user/refund", {
    key: other.apiKey,
    body: { activityId: mine?.id },
  });
  assert.equal(refund.status, 404);
  const theirs = await world.json(`/v1/admin/projects/${other.projectId}/keys`, { key: adminKey });
  const revoked = await keys(world, `/${theirs.body.keys[0].id}`, { method: "DELETE" });
  assert.equal(revoked.status, 404);
  assert.equal((await world.json("/v1/models", { key: other.apiKey })).status, 200);
  assert.equal((await world.balance("ada")).balance, "5");
});

Deno.test("api keys: a missing, malformed or unknown one is 401 everywhere, and tells how to send one", async () => {
  using world = await createWorld();
  const routes: [path: string, body?: unknown][] = [
    [chatPath, chatBody("ada")],
    ["/v1/ada/chat/completions", chatBody("ada")],
    ["/v1/models"],
    ["/v1/models/test-model"],
    ["/v1/user/balance?user=ada"],
    ["/v1/user/balance/topup?user=ada"],
    ["/v1/user/activities?user=ada"],
    [depositPath, { user: "ada", amount: "1" }],
    ["/v1/user/charge", { user: "ada", amount: "1" }],
    ["/v1/user/refund", { activityId: "act_01ARZ3NDEKTSV4RRFFQ69G5FAV" }],
  ];
  const { apiKey } = world;
  const headers = [
    undefined,
    "Bearer",
    "Bearer ",
    apiKey,
    `Basic ${apiKey}`,
    `Bearer ${apiKey.slice(0, -1)}`,
    `Bearer ${apiKey}x`,
    `Bearer ${apiKey.toLowerCase()}`,
    `Bearer x ${apiKey}`,
    `Bearer ${apiKey} x`,
    `Old Bearer ${apiKey}`,
    "Bearer sk_dev",
    `Bearer ${adminKey}`,
  ];
  for (const [path, body] of routes) {
    for (const authorization of headers) {
      const { status, body: answer, response } = await world.json(path, {
        key: null,
        body,
        ...(authorization === undefined ? {} : { headers: { authorization } }),
      });
      const label = `${path} ${authorization}`;
      assert.equal(status, 401, label);
      assert.equal(answer.error.code, "invalid_api_key", label);
      assert.equal(answer.error.type, "invalid_request_error", label);
      assert.match(response.headers.get("www-authenticate") ?? "", /^Bearer/, label);
      // Claude Code would ask for more than a minute.
      assert.equal(response.headers.get("x-should-retry"), "false", label);
      assert.ok(!JSON.stringify(answer).includes(apiKey.slice(0, 20)), "a secret is not echoed");
    }
  }
  assert.equal((await world.balance("ada")).balance, "0");
});

Deno.test("api keys: a text longer than any key is 401, and is neither looked up nor cached", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  let reads = 0;
  store.get = (key, real) => {
    reads++;
    return real(key);
  };
  for (const [key, looksFor] of [["x".repeat(128), true], ["x".repeat(129), false]] as const) {
    reads = 0;
    const { status, body } = await world.json("/v1/models", { key });
    assert.deepEqual([status, body.error.code], [401, "invalid_api_key"]);
    assert.equal(reads > 0, looksFor, `${key.length} characters`);
  }
});
