import assert from "node:assert/strict";
import { aMillionth } from "../../src/upstreams/models.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { adminKey, createWorld } from "../support/world.ts";

const price = { input: "0.15", output: "0.6" };
const modelKeys = ["id", "object", "created", "owned_by", "name", "display_name", "pricing"];

const named = {
  pricing: {
    requestFee: "0.001",
    models: {
      "test-model": price,
      "vendor/chat:free": { ...price, displayName: "Free chat", description: "Costs little" },
    },
  },
};

/** Responds with the upstream's list of models, and counts the requests for it. */
function listing(ids: unknown[]) {
  return () => Response.json({ object: "list", data: ids.map((id) => ({ id, object: "model" })) });
}

Deno.test("models: the list is OpenAI's, with what each model costs", async () => {
  using world = await createWorld({ project: named });
  const { status, body, response } = await world.json("/v1/models");
  assert.equal(status, 200);
  const common = { object: "model", created: 1767225600 };
  const pricing = {
    prompt: "0.00000015",
    completion: "0.0000006",
    request: "0.001",
    per_million: { input: "0.15", output: "0.6" },
    currency: "usd",
  };
  assert.deepEqual(body, { // case 4
    object: "list",
    data: [
      {
        ...common,
        id: "test-model",
        owned_by: "Test",
        name: "test-model",
        display_name: "test-model",
        pricing,
      },
      {
        ...common,
        id: "vendor/chat:free",
        owned_by: "vendor",
        name: "vendor/chat:free",
        display_name: "Free chat",
        description: "Costs little",
        pricing,
      },
    ],
  });
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  assert.equal(world.upstream.calls.length, 0);
});

const found: [string, string][] = [
  ["/v1/models/test-model", "test-model"],
  ["/v1/models/test-model/", "test-model"],
  ["/v1/models/vendor/chat:free", "vendor/chat:free"],
  ["/v1/models/vendor%2Fchat%3Afree", "vendor/chat:free"],
  ["/v1/models/vendor%2fchat:free", "vendor/chat:free"],
  ["/v1/ada/models/test-model", "test-model"],
  ["/v1/ada/models/vendor/chat:free", "vendor/chat:free"],
  ["/v1/a%2Fmodels%2Fb/models/vendor%2Fchat%3Afree", "vendor/chat:free"],
];

for (const [path, id] of found) {
  Deno.test(`models: ${path} is '${id}'`, async () => { // case 5
    using world = await createWorld({ project: named });
    const { status, body } = await world.json(path);
    assert.equal(status, 200);
    assert.equal(body.id, id);
    for (const key of modelKeys) assert.ok(key in body, key);
  });
}

Deno.test("models: a slip in a model's name gets the one that is priced", async () => {
  const pricing = { models: { "gpt-4o-mini": { input: "1", output: "1" } } };
  using world = await createWorld({ project: { pricing } });
  const meant = async (model: string) => {
    const { status, body } = await world.json(chatPath, { body: chatBody("ada", { model }) });
    assert.equal(status, 404);
    return /Did you mean '(.*)'\?$/.exec(body.error.message)?.[1] ?? null;
  };
  assert.equal(await meant("gpt-4o-mnii"), "gpt-4o-mini");
  assert.equal(await meant("gpt4o-mini"), "gpt-4o-mini");
  assert.equal(await meant("claude-opus"), null);
  assert.equal(await meant("x".repeat(256)), null);
});

for (const id of ["unknown", "*", "constructor", "__proto__", "%E0%A4%A", "test-model/more"]) {
  Deno.test(`models: '${id}' is 404 model_not_found`, async () => { // case 5
    using world = await createWorld({ project: named });
    const { status, body } = await world.json(`/v1/models/${id}`);
    assert.equal(status, 404);
    assert.equal(body.error.code, "model_not_found");
    const personal = await world.json(`/v1/ada/models/${id}`);
    assert.deepEqual([personal.status, personal.body.error.code], [404, "model_not_found"]);
  });
}

Deno.test("models: they require a key with the scope chat", async () => {
  using world = await createWorld();
  for (const path of ["/v1/models", "/v1/models/test-model"]) {
    assert.equal((await world.json(path, { key: null })).status, 401, path); // case 1
    assert.equal((await world.json(path, { key: "sk_no" })).status, 401, path);
  }
  const { body } = await world.json(`/v1/admin/projects/${world.projectId}/keys`, {
    key: adminKey,
    body: { scopes: ["money"] },
  });
  const { status, body: refused } = await world.json("/v1/models", { key: body.apiKey });
  assert.deepEqual([status, refused.error.code], [403, "insufficient_scope"]);
});

Deno.test("models: the path with a user in it lists the same", async () => {
  using world = await createWorld();
  const plain = await world.json("/v1/models");
  const personal = await world.json("/v1/ada/models");
  assert.deepEqual(personal.body, plain.body);
});

Deno.test("models: if any model has a price, the upstream's are listed, cached for a minute", async () => {
  using world = await createWorld({ project: { pricing: { models: { "*": price, own: price } } } });
  world.upstream.reply(listing(["alpha", "own", 7, "beta"]));
  const ids = async () =>
    // deno-lint-ignore no-explicit-any -- what a test reads of an answer, it asserts
    (await world.json("/v1/models")).body.data.map(({ id }: any) => id);
  assert.deepEqual(await ids(), ["own", "alpha", "beta"]); // case 4
  assert.equal(world.upstream.calls[0]?.url, "https://upstream.test/v1/models");
  await ids();
  assert.equal(world.upstream.calls.length, 1);
  await world.clock.advance(60_000);
  world.upstream.reply(listing(["gamma"]));
  assert.deepEqual(await ids(), ["own", "gamma"]);
});

const noList: [string, () => Response | Promise<Response>][] = [
  ["answers a page", () => new Response("<html>")],
  ["has no such endpoint", () => Response.json({ error: { message: "no" } }, { status: 404 })],
  ["cannot be reached", () => Promise.reject(new TypeError("refused"))],
  ["is silent", () => new Promise(() => {})],
];

for (const [name, answer] of noList) {
  Deno.test(`models: a project's own are listed when its upstream ${name}`, async () => {
    using world = await createWorld({
      project: { pricing: { models: { "*": price, own: price } } },
    });
    world.upstream.reply(answer);
    const asked = world.json("/v1/models");
    await world.clock.advance(5_000);
    const { status, body } = await asked;
    assert.deepEqual([status, body.data.length, body.data[0].id], [200, 1, "own"]); // case 4
  });
}

Deno.test("models: two projects with one upstream URL do not see through each other's key", async () => {
  using world = await createWorld();
  const at = (apiKey: string) => ({
    upstream: { url: "https://shared.test/v1", apiKey },
    pricing: { models: { "*": price } },
  });
  const [first, second] = [await world.makeProject(at("k-1")), await world.makeProject(at("k-2"))];
  world.upstream.reply(({ headers }) =>
    listing(headers.get("authorization") === "Bearer k-1" ? ["private"] : ["public"])()
  );
  const idOf = async (key: string) =>
    (await world.json("/v1/models", { key })).body.data.map(({ id }: { id: string }) => id);
  assert.deepEqual(await idOf(first.apiKey), ["private"]); // case 4
  assert.deepEqual(await idOf(second.apiKey), ["public"]);
});

Deno.test("models: with the catalogue, only models that it prices are listed, with its date", async () => {
  using world = await createWorld({
    project: { pricing: { catalogue: true, markupPercent: "50", models: {} } },
  });
  world.upstream.reply(listing(["gpt-4o-mini", "my-own-finetune-of-nothing"]));
  const { body } = await world.json("/v1/models");
  assert.equal(body.data.length, 1); // case 4
  const [model] = body.data;
  assert.equal(model.id, "gpt-4o-mini");
  assert.deepEqual([model.pricing.prompt, model.pricing.completion], ["0.000000225", "0.0000009"]);
  assert.match(model.catalogue_date, /^\d{4}-\d\d-\d\d$/);
});

Deno.test("models: a list that is compressed unasked is read", async () => {
  using world = await createWorld({ project: { pricing: { models: { "*": price } } } });
  world.upstream.reply(() => {
    const { body } = listing(["small"])();
    const packed = body?.pipeThrough(new CompressionStream("gzip")) ?? null;
    return new Response(packed, { headers: { "content-encoding": "gzip" } });
  });
  const { body } = await world.json("/v1/models");
  assert.deepEqual(body.data.map(({ id }: { id: string }) => id), ["small"]);
});

Deno.test("models: a server that refuses to list models is logged", async () => {
  using world = await createWorld({ project: { pricing: { models: { "*": price } } } });
  world.upstream.reply(() => Response.json({ error: { message: "wrong key" } }, { status: 401 }));
  assert.deepEqual((await world.json("/v1/models")).body.data, []);
  const told = world.logged.find(({ event }) => event === "upstream_models_failed");
  assert.match(JSON.stringify(told), /status 401/);
});

Deno.test("models: without the catalogue only the project's own prices apply", async () => {
  const asked = { model: "gpt-4o", messages: [{ role: "user", content: "Hi" }], user: "ada" };
  for (const [catalogue, status] of [[true, 200], [false, 404]] as const) {
    using world = await createWorld({ project: { pricing: { catalogue, models: {} } } });
    await world.deposit("ada", "1");
    assert.equal((await world.json("/v1/chat/completions", { body: asked })).status, status);
    assert.equal(world.upstream.calls.length, status === 200 ? 1 : 0);
  }
});

Deno.test("models: a price for a token is the price of a million, with the point moved", () => {
  const cases = [["0", "0"], ["1", "0.000001"], ["0.15", "0.00000015"], ["1000000", "1"]];
  for (const [million, one] of [...cases, ["12345678.5", "12.3456785"]]) {
    assert.equal(aMillionth(million ?? ""), one);
  }
});
