import assert from "node:assert/strict";
import { chat, usageOf } from "../support/chat.ts";
import { askedOf, replies, routedModels, routedWorld, twoUpstreams } from "../support/routing.ts";
import { completion } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const listing = (...models: Body[]) => () => Response.json({ object: "list", data: models });
const price = routedModels.a;
const any = { "*": { targets: [{ upstream: "main" }, { upstream: "spare" }] } };

async function listed(world: World): Promise<Body[]> {
  return (await world.json("/v1/models")).body.data;
}
const idsOf = (models: Body[]) => models.map(({ id }) => id);

Deno.test("models: a route's name is listed at the price that is charged for it", async () => {
  using world = await routedWorld();
  const models = await listed(world);
  assert.deepEqual(idsOf(models), ["test-model", "a", "b", "smart"]);
  const smart = models.find(({ id }) => id === "smart");
  assert.deepEqual(smart?.pricing.per_million, { input: "3", output: "4" });
  const { body } = await world.json("/v1/models/smart");
  assert.deepEqual(body.pricing, smart?.pricing);
});

Deno.test("models: what the upstreams of '*' list is merged, with their modalities", async () => {
  using world = await routedWorld({ routes: any, pricing: { models: { "*": price } } });
  const architecture = { input_modalities: ["text", "image"], output_modalities: ["text"] };
  replies(world, {
    main: listing({ id: "x" }, { id: "y", architecture }),
    spare: listing({ id: "y" }, { id: "z" }),
  });
  const models = await listed(world);
  assert.deepEqual(idsOf(models), ["x", "y", "z"]);
  assert.deepEqual(models[1]?.architecture, architecture);
  assert.equal(models[0]?.architecture, undefined);
});

Deno.test("models: an upstream that fails hides only its own, and its last list stays", async () => {
  using world = await routedWorld({ routes: any, pricing: { models: { "*": price } } });
  replies(world, { main: listing({ id: "x" }), spare: listing({ id: "z" }) });
  assert.deepEqual(idsOf(await listed(world)), ["x", "z"]);
  replies(world, { main: () => Promise.reject(new Error("down")), spare: listing({ id: "n" }) });
  await world.clock.advance(60_000);
  assert.deepEqual(idsOf(await listed(world)), ["n", "x"]);
});

Deno.test("models: an upstream's setting bounds what is sent to it", async () => {
  using world = await routedWorld({
    upstreams: {
      main: { ...twoUpstreams.main, models: ["gpt-*", "o3"] },
      spare: twoUpstreams.spare,
    },
    routes: any,
    pricing: { models: { "*": price } },
  });
  const answer = () => completion();
  replies(world, { main: answer, spare: answer });
  for (const model of ["gpt-4o", "o3", "o3-mini"]) await chat(world, { model });
  await operate(world, "", {
    method: "PATCH",
    body: { routes: { "*": { targets: [{ upstream: "main" }] } } },
  });
  const { status, body } = await chat(world, { model: "o3-mini" });
  assert.deepEqual([status, body.error.code], [404, "model_not_found"]);
  assert.equal((await world.json("/v1/models/o3-mini")).status, 404);
  assert.deepEqual(askedOf(world), ["main gpt-4o", "main o3", "spare o3-mini"]);
  assert.equal((await usageOf(world)).length, 3);
});

Deno.test("models: an upstream may serve what it lists itself, kept fresh beside the calls", async () => {
  using world = await routedWorld({
    upstreams: { main: { ...twoUpstreams.main, models: "upstream" }, spare: twoUpstreams.spare },
    routes: any,
    pricing: { models: { "*": price } },
  });
  const answer = (only: string) => ({ url }: { url: string }) =>
    url.endsWith("/models") ? listing({ id: only })() : completion();
  replies(world, { main: answer("x"), spare: answer("z") });
  // Nothing is known of it yet: it may serve anything.
  await chat(world, { model: "y" });
  await world.until(() => world.upstream.calls.length === 2);
  world.upstream.calls.length = 0;
  await chat(world, { model: "y" });
  await chat(world, { model: "x" });
  assert.deepEqual(askedOf(world), ["spare y", "main x"]);
});

Deno.test("models: those that an upstream's settings name are listed, whatever it lists itself", async () => {
  const named = { ...twoUpstreams.main, models: ["named", "gpt-*"] };
  using world = await routedWorld({
    upstreams: { main: named },
    routes: { "*": { targets: [{ upstream: "main" }] } },
    pricing: { models: { "*": price } },
  });
  replies(world, { main: listing({ id: "gpt-4o" }, { id: "other" }) });
  assert.deepEqual(idsOf(await listed(world)), ["gpt-4o", "named"]);
});

Deno.test("models: the instance's routes are listed where the project uses them", async () => {
  const routes = { shared: { targets: [{ upstream: "main", model: "a" }] } };
  const options = {
    env: { UPSTREAMS: JSON.stringify({ upstreams: twoUpstreams, routes }) },
    project: { pricing: { models: { a: price } } },
  };
  using world = await createWorld(options);
  assert.deepEqual(idsOf(await listed(world)), ["a", "shared"]);
  const upstream = { url: "https://own.example/v1" };
  using own = await createWorld({ ...options, project: { ...options.project, upstream } });
  assert.deepEqual(idsOf(await listed(own)), ["a"]);
});

Deno.test("models: one model has the modalities that its upstream lists, once those are known", async () => {
  using world = await routedWorld({ routes: any, pricing: { models: { "*": price } } });
  const architecture = { input_modalities: ["text"], output_modalities: ["text"] };
  replies(world, { main: listing({ id: "x", architecture }), spare: listing() });
  const [inList] = await listed(world);
  const { body } = await world.json("/v1/models/x");
  assert.deepEqual(body, inList);
});

Deno.test("models: a change of prices changes the list at once", async () => {
  using world = await routedWorld();
  const before = (await listed(world)).find(({ id }) => id === "a");
  assert.equal(before?.pricing.per_million.input, "3");
  const body = { pricing: { models: { a: { input: "9" } } } };
  const path = `/v1/admin/projects/${world.projectId}`;
  await world.json(path, { method: "PATCH", key: adminKey, body });
  const after = (await listed(world)).find(({ id }) => id === "a");
  assert.equal(after?.pricing.per_million.input, "9");
});

Deno.test("models: of 16 upstreams, dead ones delay one caller for two seconds", async () => {
  const names = Array.from({ length: 16 }, (_, index) => `u${index}`);
  using world = await routedWorld({
    upstreams: Object.fromEntries(names.map((name) => [name, { url: `https://${name}.example` }])),
    routes: { "*": { targets: names.map((upstream) => ({ upstream })) } },
    pricing: { models: { "*": price } },
  });
  const silent = () => new Promise<Response>(() => {});
  const answers = names.map((name) => [name, name < "u2" ? silent : listing({ id: name })]);
  replies(world, Object.fromEntries(answers));
  const first = listed(world);
  await world.clock.advance(2_000);
  const expected = names.filter((name) => name >= "u2").sort();
  assert.deepEqual(idsOf(await first), expected);
  for (let time = 0; time < 3; time++) {
    await world.clock.advance(60_000);
    assert.deepEqual(idsOf(await listed(world)), expected);
  }
});

Deno.test("models: 2,000 of 16 upstreams are listed again in a few times what writing them takes", async () => {
  const names = Array.from({ length: 16 }, (_, index) => `u${index}`);
  using world = await routedWorld({
    upstreams: Object.fromEntries(names.map((name) => [name, { url: `https://${name}.example` }])),
    routes: { "*": { targets: names.map((upstream) => ({ upstream })) } },
    pricing: { models: { "*": price } },
  });
  // Each lists some that the next one lists too.
  const many = names.map((name, index) => [
    name,
    listing(...Array.from({ length: 200 }, (_, at) => ({ id: `model-${120 * index + at}` }))),
  ]);
  replies(world, Object.fromEntries(many));
  const models = await listed(world);
  assert.equal(models.length, 2_000);
  const asked = world.upstream.calls.length;
  let [leastMs, writtenMs] = [Infinity, Infinity];
  for (let time = 0; time < 20; time++) {
    const began = performance.now();
    const response = await world.call("/v1/models", {});
    const answered = performance.now();
    JSON.stringify(models);
    leastMs = Math.min(leastMs, answered - began);
    writtenMs = Math.min(writtenMs, performance.now() - answered);
    await response.body?.cancel();
  }
  assert.equal(world.upstream.calls.length, asked);
  // Five times in a quiet run.
  assert(leastMs < 25 * writtenMs, `${leastMs} ms, JSON.stringify ${writtenMs} ms`);
});
