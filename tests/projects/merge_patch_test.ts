import assert from "node:assert/strict";
import fc from "fast-check";
import { mergePatch } from "../../src/projects/merge_patch.ts";
import type { Json } from "../../src/base/json.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const pathOf = (world: World) => `/v1/admin/projects/${world.projectId}`;

async function patch(world: World, body: Body): Promise<Body> {
  const { status, body: { project, error } } = await world.json(pathOf(world), {
    method: "PATCH",
    key: adminKey,
    body,
  });
  assert.equal(status, 200, error?.message);
  return project;
}

async function trail(world: World): Promise<Body[]> {
  const { body } = await world.json(`${pathOf(world)}/audit`, { key: adminKey });
  return body.actions;
}

// https://www.rfc-editor.org/rfc/rfc7396, appendix A
const examples: [Json, Json, Json][] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [["a", "b"], ["c", "d"], ["c", "d"]],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  [{}, JSON.parse('{"__proto__":{"x":1}}'), JSON.parse('{"__proto__":{"x":1}}')],
];
for (const [target, change, result] of examples) {
  Deno.test(`merge patch: ${JSON.stringify(target)} with ${JSON.stringify(change)}`, () => {
    assert.equal(JSON.stringify(mergePatch(target, change)), JSON.stringify(result));
  });
}

Deno.test("merge patch: what a patch does not name stays, at any depth", () => {
  const tree = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.string(),
      fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value")),
    ),
  })).value;
  fc.assert(fc.property(tree, tree, (before, change) => {
    const merged = mergePatch(before, change);
    const check = (was: Json | undefined, now: Json | undefined, part: Json | undefined) => {
      if (typeof part !== "object" || part === null || typeof was !== "object") return;
      for (const [name, value] of Object.entries(Object(was))) {
        if (name in part) check(value as Json, Object(now)[name], Object(part)[name]);
        else assert.deepEqual(Object(now)[name], value);
      }
    };
    check(before, merged, change);
  }));
});

Deno.test("projects: a change of a limit keeps the others; null removes one", async () => {
  using world = await createWorld();
  await patch(world, { limits: { user: { requestsPerMinute: 9, spendPerDay: "5" } } });
  const { limits } = await patch(world, { limits: { key: { concurrent: 4 } } });
  assert.deepEqual(
    [limits.user.requestsPerMinute, limits.user.spendPerDay, limits.key.concurrent],
    [9, "5", 4],
  );
  const removed = await patch(world, { limits: { user: { spendPerDay: null } } });
  assert.deepEqual(
    [removed.limits.user.requestsPerMinute, removed.limits.user.spendPerDay],
    [9, null],
  );
});

Deno.test("projects: models, their prices, messages and top-up settings merge too", async () => {
  using world = await createWorld();
  const tiers = [{ above: 200_000, input: "4" }];
  const models = { one: { input: "1", output: "2", tiers }, two: { input: "3", output: "4" } };
  await patch(world, {
    pricing: { models },
    messages: { en: { busy: "Wait. {{url}}" }, de: { busy: "Bitte warten. {{url}}" } },
    topUp: { min: "2", max: "50", amounts: ["5"] },
  });
  const changed = await patch(world, {
    pricing: { models: { one: { input: "1.5" }, three: { input: "1", output: "1" } } },
    messages: { en: { cut: "Cut. {{url}}" }, de: null },
    topUp: { max: "60" },
  });
  assert.deepEqual(changed.pricing.models.one, { input: "1.5", output: "2", tiers });
  assert.deepEqual(changed.pricing.models.two, { input: "3", output: "4" });
  assert.deepEqual(Object.keys(changed.pricing.models).includes("three"), true);
  assert.deepEqual(changed.messages, { en: { busy: "Wait. {{url}}", cut: "Cut. {{url}}" } });
  assert.partialDeepStrictEqual(changed.topUp, { min: "2", max: "60", amounts: ["5"] });
  const removed = await patch(world, { pricing: { models: { one: { tiers: null }, two: null } } });
  assert.deepEqual(removed.pricing.models.one, { input: "1.5", output: "2" });
  assert.equal("two" in removed.pricing.models, false);
  const none = await patch(world, { pricing: { models: null }, topUp: { amounts: null } });
  assert.deepEqual(none.pricing.models, {});
  assert.deepEqual(none.topUp.amounts, ["5", "10", "25"]);
});

Deno.test("projects: a patch that is invalid once merged changes nothing, and names the field", async () => {
  using world = await createWorld();
  await patch(world, { topUp: { min: "5" } });
  const cases: [Body, string][] = [
    [{ topUp: { max: "1" } }, "topUp.max"],
    [{ limits: { user: { spendPerDay: 5 } } }, "limits.user.spendPerDay"],
    [{ limits: { nobody: 1 } }, "limits.nobody"],
    [{ pricing: { models: { one: { output: null } } } }, "pricing.models.one.input"],
    [{ noSuchSetting: 1 }, "noSuchSetting"],
    [{ limits: null }, "limits"],
  ];
  for (const [body, param] of cases) {
    const { status, body: { error } } = await world.json(pathOf(world), {
      method: "PATCH",
      key: adminKey,
      body,
    });
    assert.deepEqual([status, error.param], [400, param], JSON.stringify(body));
  }
});

Deno.test("projects: an upstream's key stays with its host, and never goes to another", async () => {
  using world = await createWorld();
  const read = async () =>
    (await world.json(pathOf(world), { key: adminKey })).body.project.upstream;
  await patch(world, { upstream: { url: "https://one.example/v1", apiKey: "sk-abc" } });
  await patch(world, { upstream: { provider: "openai" } });
  assert.partialDeepStrictEqual(await read(), {
    url: "https://one.example/v1",
    provider: "openai",
  });
  const hasKey = async () => JSON.stringify(await read()).includes('"apiKey":"');
  const withKey = await hasKey();
  await patch(world, { upstream: { url: "https://one.example/v2" } });
  assert.equal(await hasKey(), withKey);
  await patch(world, { upstream: { url: "https://two.example/v1" } });
  assert.equal(await hasKey(), false);
  await patch(world, { upstream: null });
  assert.equal(await read(), null);
});

Deno.test("audit: a change is recorded by its leaves, with the old and the new value", async () => {
  using world = await createWorld();
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`model-${at}`, { input: "1", output: "2" }]),
  );
  await patch(world, { pricing: { models: many }, limits: { user: { spendPerDay: "5" } } });
  await patch(world, {
    pricing: { models: { "model-7": { input: "3.00" }, "model-8": null } },
    limits: { key: { concurrent: 2 } },
  });
  const [last] = await trail(world);
  assert.deepEqual(last?.detail, {
    fields: ["limits", "pricing.models"],
    "limits.key.concurrent": { from: null, to: 2 },
    "pricing.models.model-7.input": { from: "1", to: "3" },
    "pricing.models.model-8.input": { from: "1", to: null },
    "pricing.models.model-8.output": { from: "2", to: null },
  });
});

Deno.test("audit: nothing of a large change is left out, and of secrets only that they changed", async () => {
  using world = await createWorld();
  const many = (input: string) =>
    Object.fromEntries(
      Array.from({ length: 600 }, (_, at) => [`vendor/model-${at}`, { input, output: "2" }]),
    );
  await patch(world, { pricing: { models: many("1") } });
  await patch(world, { pricing: { models: many("1.25") } });
  const rows = (await trail(world)).filter(({ detail }) => detail.fields);
  const moves = new Map(rows.flatMap(({ detail }) => Object.entries<Body>(detail)));
  for (let at = 0; at < 600; at++) {
    assert.ok(moves.has(`pricing.models.vendor/model-${at}.input`));
  }
  assert.ok(rows.every(({ detail }) => !detail.omitted));
  await patch(world, {
    upstream: { url: "https://one.example/v1", apiKey: "sk-secret-1" },
    stripe: { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" },
  });
  await patch(world, { upstream: { apiKey: "sk-secret-2" } });
  const [last, before] = await trail(world);
  assert.deepEqual(last?.detail["upstream.apiKey"], { from: "a secret", to: "another secret" });
  assert.deepEqual(before?.detail["upstream.url"], { from: null, to: "https://one.example/v1" });
  assert.deepEqual(before?.detail["stripe.secretKey"], { from: null, to: "a secret" });
  assert.doesNotMatch(JSON.stringify([last, before]), /sk-secret|sk_test|whsec/);
});
