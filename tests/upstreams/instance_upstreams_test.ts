import assert from "node:assert/strict";
import { readConfig } from "../../src/config/config.ts";
import { readInstanceUpstreams } from "../../src/projects/instance_upstreams.ts";
import { chat, usageOf } from "../support/chat.ts";
import { askedOf, failing, replies, routedModels } from "../support/routing.ts";
import { completion } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, createWorld } from "../support/world.ts";

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

Deno.test("instance: a route to an upstream that it has no more hinders no other change", async () => {
  using world = await createWorld({
    env: ofInstance({ upstreams }),
    project: { pricing, routes: { smart: { targets: [{ upstream: "main" }] } } },
  });
  using without = await createWorld({ shareWith: world, env: ofInstance({}) });
  const path = `/v1/admin/projects/${world.projectId}`;
  const change = (body: unknown) => without.json(path, { method: "PATCH", key: adminKey, body });
  assert.equal((await change({ name: "Renamed" })).status, 200);
  const { status, body } = await change({ routes: { other: { targets: [{ upstream: "main" }] } } });
  assert.deepEqual([status, body.error.param], [400, "routes.smart.targets.0.upstream"]);
});

const keyOf = (apiKey: unknown) =>
  JSON.stringify({ upstreams: { main: { ...upstreams.main, apiKey } } });

Deno.test("instance: a key can be that of a variable, and a file can have the settings", () => {
  const environment = { UPSTREAMS_FILE: "the.json", MAIN_KEY: "its-key" };
  const readFile = (path: string) => path === "the.json" ? keyOf({ env: "MAIN_KEY" }) : "";
  const config = readConfig(environment, { dev: true, readFile });
  assert.deepEqual(config.upstreams?.keyNames, ["MAIN_KEY"]);
  assert.doesNotMatch(JSON.stringify(config), /its-key/);
  const read = readInstanceUpstreams(config);
  assert.equal(read.apiKeys.main?.reveal(), "its-key");
  assert.equal(read.upstreams.main?.apiKey, null);
});

const notJson = "{";
const faults: readonly (readonly [string, RegExp])[] = [
  [notJson, /^UPSTREAMS must be JSON$/],
  ['{"upstreams":{"main":{}}}', /^UPSTREAMS: 'upstreams\.main\.url' is required/],
  ['{"upstreams":{"Main":{"url":"https://a.example"}}}', /^UPSTREAMS: 'upstreams\.Main'/],
  ['{"routes":{"x":{"targets":[{"upstream":"main"}]}}}', /'routes\.x' names no upstream/],
  ['{"upstream":{}}', /^UPSTREAMS: /],
  [
    '{"upstreams":{"main":{"url":"https://a.test/v1/embeddings"}}}',
    /^UPSTREAMS: 'upstreams\.main\.url' .*write 'https:\/\/a\.test\/v1'/,
  ],
  ["[]", /^UPSTREAMS: /],
  ["null", /^UPSTREAMS: /],
  ['{"upstreams":[]}', /^UPSTREAMS: 'upstreams' /],
  ['{"upstreams":{"main":null}}', /^UPSTREAMS: 'upstreams\.main' /],
  [keyOf({ env: "NONE" }), /^UPSTREAMS: 'upstreams\.main\.apiKey' names .* not set: 'NONE'$/],
  [keyOf({ env: 1 }), /^UPSTREAMS: 'upstreams\.main\.apiKey' must be a text, or \{"env"/],
  [keyOf({ env: "SOME", or: "x" }), /^UPSTREAMS: 'upstreams\.main\.apiKey' must be a text/],
  [keyOf({ env: "SPACED" }), /^UPSTREAMS: 'upstreams\.main\.apiKey' must be visible ASCII/],
  [keyOf("sk-..."), /^UPSTREAMS: 'upstreams\.main\.apiKey' is still a placeholder/],
];
for (const [text, told] of faults) {
  Deno.test(`instance: ${text} is an error at the start that names the setting`, () => {
    const environment = { SOME: "some-key", SPACED: "some key" };
    for (const setting of ["UPSTREAMS", "UPSTREAMS_FILE"]) {
      const read = () =>
        readInstanceUpstreams(
          readConfig({ ...environment, [setting]: text }, { dev: true, readFile: () => text }),
        );
      assert.throws(read, ({ message }: Error) => {
        assert.match(message.replace(/^UPSTREAMS_FILE/, "UPSTREAMS"), told);
        assert.ok(message.startsWith(setting), message);
        assert.doesNotMatch(message, /some.key/);
        return true;
      });
    }
  });
}

Deno.test("instance: the two settings are not set together", () => {
  const both = { UPSTREAMS: "{}", UPSTREAMS_FILE: "the.json" };
  assert.throws(() => readConfig(both, { dev: true }), /^Error: UPSTREAMS and UPSTREAMS_FILE must/);
});
