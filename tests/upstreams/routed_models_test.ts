import assert from "node:assert/strict";
import { chat, usageOf } from "../support/chat.ts";
import { askedOf, replies, routedModels, routedWorld, twoUpstreams } from "../support/routing.ts";
import { completion } from "../support/upstream.ts";
import { adminKey, type Body, type World } from "../support/world.ts";
import { createCatalogue } from "../../src/pricing/catalogue.ts";
import { createPrices } from "../../src/pricing/terms.ts";
import { createModels } from "../../src/upstreams/models.ts";
import { upstreamNamed } from "../support/targets.ts";

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
  assert.deepEqual(idsOf(await listed(world)), ["x", "n"]);
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

Deno.test("models: 2,000 of 16 upstreams are listed again within 20 ms", async () => {
  using world = await routedWorld();
  const { project } = (await world.json(`/v1/admin/projects/${world.projectId}`, {
    method: "GET",
    key: adminKey,
  })).body;
  const prices = createPrices(createCatalogue(), null);
  const models = createModels({
    deps: world.deps,
    prices,
    upstreams: {
      findTargets: () => Promise.resolve({ route: null, targets: [] }),
      findCatchAll: () =>
        Promise.resolve(
          Array.from({ length: 16 }, (_, index) => ({
            upstream: upstreamNamed(`u${index}`),
            place: { url: "https://openrouter.ai/api/v1" },
            serves: () => true,
          })),
        ),
      modelLists: { read: () => Promise.resolve(many), known: () => many },
    },
  });
  const asked = { ...project, routes: {}, pricing: { ...project.pricing, models: { "*": price } } };
  let least = Infinity;
  for (let time = 0; time < 10; time++) {
    const began = performance.now();
    assert.equal((await models.list(asked)).length, 2_000);
    least = Math.min(least, performance.now() - began);
  }
  assert(least < 20, `${least} ms`);
});

const many = new Map(
  Array.from({ length: 2_000 }, (_, index) => {
    const id = `model-${index}`;
    return [id, { id, modalities: null }];
  }),
);
