import assert from "node:assert/strict";
import { endpoints } from "../../src/base/endpoints.ts";
import { providers } from "../../src/projects/providers.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const secretsKey = { SECRETS_KEY: btoa("a".repeat(32)) };

const change = (world: World, body: Body) =>
  world.json(`/v1/admin/projects/${world.projectId}`, { method: "PATCH", key: adminKey, body });

const one = { url: "https://one.test/v1", apiKey: "sk-one" };

Deno.test("upstreams: keys are sealed, shown as set, and kept while their host stays", async () => {
  using world = await createWorld({ env: secretsKey });
  const made = await change(world, { upstreams: { main: one, spare: { provider: "openrouter" } } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const shown = made.body.project.upstreams;
  assert.deepEqual([shown.main.apiKey, shown.spare.apiKey], [{ set: true }, null]);
  const stored = JSON.stringify(
    (await world.deps.kv.list({ prefix: ["project"], limit: 9 })).map(({ value }) =>
      new TextDecoder().decode(value ?? new Uint8Array())
    ),
  );
  assert.equal(stored.includes("sk-one"), false);
  const headers = await change(world, { upstreams: { main: { headers: { "x-team": "a" } } } });
  assert.deepEqual(headers.body.project.upstreams.main.apiKey, { set: true }, "the key stays");
  assert.equal(headers.body.project.upstreams.spare.provider, "openrouter", "the others stay");
  const moved = await change(world, { upstreams: { main: { url: "https://two.test/v1" } } });
  assert.equal(moved.body.project.upstreams.main.apiKey, null, "another host never gets it");
  const removed = await change(world, { upstreams: { spare: null } });
  assert.deepEqual(Object.keys(removed.body.project.upstreams), ["main"]);
});

const bad: [string, Body][] = [
  ["no URL and no provider", { upstreams: { main: {} } }],
  ["a provider without a URL of its own", { upstreams: { main: { provider: "azure" } } }],
  ["a name with a space", { upstreams: { "a b": one } }],
  ["an unknown field", { upstreams: { main: { ...one, port: 1 } } }],
  ["a route to no upstream", { routes: { smart: { targets: [{ upstream: "gone" }] } } }],
  ["a route without targets", { routes: { smart: { targets: [] } } }],
  [
    "a negative weight",
    { upstreams: { main: one }, routes: { a: { targets: [{ upstream: "main", weight: -1 }] } } },
  ],
  [
    "an unknown strategy",
    {
      upstreams: { main: one },
      routes: { a: { strategy: "luck", targets: [{ upstream: "main" }] } },
    },
  ],
  ["a header with a line break", { upstreams: { main: { ...one, headers: { a: "b\r\nc: d" } } } }],
];
for (const key of ["upstream", "upstreams"]) {
  for (const { path } of Object.values(endpoints)) {
    Deno.test(`upstreams: a URL in '${key}' with ${path} at its end is 400 that says what to write`, async () => {
      using world = await createWorld({ env: secretsKey });
      const wrong = { url: `https://one.test/v1${path}` };
      const refused = await change(world, { [key]: key === "upstream" ? wrong : { main: wrong } });
      assert.equal(refused.status, 400);
      assert.match(refused.body.error.message, /write 'https:\/\/one\.test\/v1'/);
    });
  }
}

for (const [what, body] of bad) {
  Deno.test(`upstreams: ${what} is 400, and changes nothing`, async () => {
    using world = await createWorld({ env: secretsKey });
    const refused = await change(world, body);
    assert.equal(refused.status, 400, JSON.stringify(refused.body));
    const path = `/v1/admin/projects/${world.projectId}`;
    const { body: { project } } = await world.json(path, { key: adminKey });
    assert.deepEqual([project.upstreams, project.routes], [{}, {}]);
  });
}

Deno.test("upstreams: one that a route leads to cannot be removed", async () => {
  using world = await createWorld({ env: secretsKey });
  const routes = { smart: { targets: [{ upstream: "main" }] } };
  await change(world, { upstreams: { main: one }, routes });
  assert.equal((await change(world, { upstreams: { main: null } })).status, 400);
  const both = await change(world, { upstreams: { main: null }, routes: { smart: null } });
  assert.equal(both.status, 200, JSON.stringify(both.body));
});

Deno.test("upstreams: every prepared provider is valid by its name, or says that it needs a URL", async () => {
  using world = await createWorld({ env: secretsKey });
  for (const [name, { url }] of Object.entries(providers)) {
    const { status } = await change(world, { upstreams: { one: { provider: name } } });
    assert.equal(status, url ? 200 : 400, name);
  }
});
