import assert from "node:assert/strict";
import {} from "../../src/base/json.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { signedIn } from "../support/console.ts";
import { operate, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

async function makeKey(world: World, body: Body): Promise<{ apiKey: string; key: Body }> {
  const made = await operate(world, "/keys", { body });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body as { apiKey: string; key: Body };
}

const ask = (world: World, key: string, model = "test-model") =>
  world.json(chatPath, { key, body: { ...chatBody("ada"), model } });

Deno.test("keys: the first key calls models and moves money, and only the owner's opens the console", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  assert.equal((await ask(world, world.apiKey)).status, 200);
  assert.equal((await ask(world, world.ownerKey)).status, 403);
  assert.ok((await signedIn(world, world.ownerKey)).cookie);
});

Deno.test("keys: a key works until it expires, and its console session with it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const expiresAt = "2026-01-01T01:00:00.000Z";
  const { apiKey } = await makeKey(world, { scopes: ["chat", "owner"], expiresAt });
  const visitor = await signedIn(world, apiKey);
  await world.clock.advance(59 * 60_000);
  assert.equal((await ask(world, apiKey)).status, 200);
  assert.equal((await visitor.get("audit")).status, 200);
  await world.clock.advance(60_000);
  const { status, body } = await ask(world, apiKey);
  assert.deepEqual([status, body.error.message], [401, "The API key has expired."]);
  assert.equal((await visitor.get("audit")).status, 303);
  const bad = await operate(world, "/keys", { body: { expiresAt: "tomorrow" } });
  assert.deepEqual([bad.status, bad.body.error.param], [400, "expiresAt"]);
});

Deno.test("keys: a key calls and lists only its models", async () => {
  const price = { input: "1", output: "2", reasoning: false };
  const models = { "test-model": price, "test-mini": price, other: price };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1");
  const { apiKey } = await makeKey(world, { scopes: ["chat"], models: ["test-*"] });
  assert.equal((await ask(world, apiKey, "test-mini")).status, 200);
  const { status, body } = await ask(world, apiKey, "other");
  assert.deepEqual([status, body.error.code, body.error.param], [
    403,
    "model_not_allowed",
    "model",
  ]);
  const { body: { data } } = await world.json("/v1/models", { key: apiKey });
  assert.deepEqual(data.map(({ id }: Body) => id).toSorted(), ["test-mini", "test-model"]);
  assert.equal((await world.json("/v1/models/other", { key: apiKey })).status, 404);
});

Deno.test("keys: a budget bounds what a key spends on models and by charges, whoever pays", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { apiKey } = await makeKey(world, { scopes: ["chat", "money"], budget: "0.0002" });
  const charge = (amount: string, idempotencyKey: string) =>
    world.json("/v1/user/charge", {
      key: apiKey,
      body: { user: "ada", amount },
      headers: { "idempotency-key": idempotencyKey },
    });
  assert.equal((await charge("0.0001", "one")).status, 200);
  assert.equal((await ask(world, apiKey)).status, 200);
  assert.equal((await charge("0.0001", "two")).body.error.code, "key_budget_reached");
  assert.equal((await charge("0.00008", "three")).status, 200);
  const { status, body } = await ask(world, apiKey);
  assert.deepEqual([status, body.error.code], [403, "key_budget_reached"]);
  assert.equal((await charge("0.0001", "one")).status, 200, "a repeated charge is answered again");
  assert.equal((await ask(world, world.apiKey)).status, 200, "other keys go on");
});

Deno.test("keys: revoking one with what it has made ends its keys, theirs, and the subscriptions", async () => {
  using world = await createWorld();
  const owner = await signedIn(world, world.ownerKey);
  const form = async (name: string, scopes: string, visitor = owner) => {
    const { html } = await visitor.get("keys");
    const [, formId = ""] = /name="formId" value="([^"]+)"/.exec(html) ?? [];
    const made = await visitor.post("keys", { formId, name, scopes });
    const [apiKey = ""] = /sk_[0-9A-Za-z]{43}/.exec(made.html) ?? [];
    world.seenSecrets.add(apiKey);
    return apiKey;
  };
  const second = await form("second owner", "owner");
  const third = await form("app", "webhooks", await signedIn(world, second));
  const hook = { url: "https://hooks.example.com/third", events: ["*"] };
  assert.equal((await world.json(subscriptionsPath, { key: third, body: hook })).status, 201);
  const kept = await subscribe(world);
  const all: Body[] = (await operate(world, "/keys", { method: "GET" })).body.keys;
  const bySecond = all.find(({ name }) => name === "second owner");
  const { body } = await operate(world, `/keys/${bySecond?.id}?made=true`, { method: "DELETE" });
  assert.equal(body.made.length, 2);
  assert.equal((await world.json(subscriptionsPath, { key: third })).status, 401);
  const { body: { subscriptions } } = await world.json(subscriptionsPath);
  const active = subscriptions.filter(({ isActive }: Body) => isActive);
  assert.deepEqual(active.map(({ id }: Body) => id), [kept.id]);
});
