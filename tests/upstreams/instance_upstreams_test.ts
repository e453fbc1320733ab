import assert from "node:assert/strict";
import { readConfig } from "../../src/config.ts";
import { readInstanceUpstreams } from "../../src/projects/instance_upstreams.ts";
import { chat, usageOf } from "../support/chat.ts";
import { askedOf, failing, replies, routedModels } from "../support/routing.ts";
import { completion } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const upstreams = {
  main: { url: "https://main.example/v1", apiKey: "main-key" },
  spare: { url: "https://spare.example/v1", apiKey: "spare-key" },
};
const targets = [{ upstream: "main", model: "a" }, { upstream: "spare", model: "b" }];
const pricing = { models: { ...routedModels, "*": routedModels.a } };
const ofInstance = (settings: unknown) => ({ UPSTREAMS: JSON.stringify(settings) });

Deno.test("instance: its upstreams and routes are every project's, with their keys", async () => {
  using world = await createWorld({
    env: ofInstance({ upstreams, routes: { smart: { targets } } }),
    project: { pricing },
  });
  await world.deposit("ada", "1");
  replies(world, {
    main: failing(500),
    spare: () => completion({ model: "b" }),
    upstream: () => completion(),
  });
  const { response } = await chat(world, { model: "smart" });
  assert.equal(response.headers.get("x-service-upstream"), "spare");
  assert.equal(world.upstream.calls[1]?.headers.get("authorization"), "Bearer spare-key");
  assert.equal((await chat(world)).response.headers.get("x-service-upstream"), null);
  assert.equal((await usageOf(world)).length, 2);
  assert.doesNotMatch(JSON.stringify(world.logged), /(main|spare)-key/);
});

Deno.test("instance: a project's routes may lead to its upstreams and to the usual one", async () => {
  const ofProject = [{ upstream: "main" }, { upstream: "default", model: "a" }];
  using world = await createWorld({
    env: ofInstance({ upstreams }),
    project: { pricing, routes: { smart: { targets: ofProject } } },
  });
  await world.deposit("ada", "1");
  replies(world, { main: failing(500), upstream: () => completion({ model: "a" }) });
  const { response } = await chat(world, { model: "smart" });
  assert.equal(response.headers.get("x-service-upstream"), "default");
  assert.deepEqual(askedOf(world), ["main smart", "upstream a"]);
  const unknown = { routes: { x: { targets: [{ upstream: "nowhere" }] } } };
  const { status, body } = await operate(world, "", { method: "PATCH", body: unknown });
  assert.equal(status, 400);
  assert.equal(body.error.param, "routes.x.targets.0.upstream");
});

Deno.test("instance: a project's own come first, and one with an upstream has no other routes", async () => {
  using world = await createWorld({
    env: ofInstance({ upstreams, routes: { "*": { targets: [{ upstream: "main" }] } } }),
    project: { pricing, upstream: { url: "https://own.example/v1" } },
  });
  await world.deposit("ada", "1");
  replies(world, { own: () => completion(), mine: () => completion() });
  await chat(world);
  await operate(world, "", {
    method: "PATCH",
    body: {
      upstreams: { main: { url: "https://mine.example/v1" } },
      routes: { "*": { targets: [{ upstream: "main" }] } },
    },
  });
  await chat(world);
  assert.deepEqual(askedOf(world), ["own test-model", "mine test-model"]);
});

for (
  const [text, told] of [
    ["{", /^UPSTREAMS must be JSON$/],
    ['{"upstreams":{"main":{}}}', /^UPSTREAMS: 'upstreams\.main\.url' is required/],
    ['{"upstreams":{"Main":{"url":"https://a.example"}}}', /^UPSTREAMS: 'upstreams\.Main'/],
    ['{"routes":{"x":{"targets":[{"upstream":"main"}]}}}', /'routes\.x' names no upstream/],
    ['{"upstream":{}}', /^UPSTREAMS: /],
  ] as const
) {
  Deno.test(`instance: ${text} is an error at the start that names the setting`, () => {
    const config = readConfig({ UPSTREAMS: text }, { dev: true });
    assert.throws(() => readInstanceUpstreams(config), { message: told });
  });
}
