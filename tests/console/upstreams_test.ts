import assert from "node:assert/strict";
import { chat } from "../support/chat.ts";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { replies, routedModels } from "../support/routing.ts";
import { completion } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const settings = async (world: World): Promise<Body> =>
  (await operate(world, "", { method: "GET" })).body.project;

const upstream = {
  name: "main",
  provider: "",
  url: "https://main.example/v1",
  apiKey: "main-key",
  chat: "on",
  connectMs: "2000",
  models: "a\nb*",
  headers: "HTTP-Referer: https://my.app",
};

Deno.test("console: the operator adds, changes and removes an upstream and a route", async () => {
  using world = await createWorld({ project: { pricing: { models: routedModels } } });
  const operator = await signedIn(world, adminKey);
  const added = await operator.submit("upstreams/one", upstream);
  assert.match(textOf(added.html), /Saved\./);
  assert.deepEqual((await settings(world)).upstreams.main, {
    url: "https://main.example/v1",
    apiKey: { set: true },
    formats: ["chat"],
    headers: { "HTTP-Referer": "https://my.app" },
    timeouts: { connectMs: 2000 },
    models: ["a", "b*"],
  });
  const route = { model: "smart", targets: "main a 3\nmain = 1", strategy: "weight", sticky: "on" };
  await operator.submit("upstreams/route", route);
  assert.deepEqual((await settings(world)).routes.smart, {
    strategy: "weight",
    sticky: true,
    targets: [{ upstream: "main", model: "a", weight: 3 }, { upstream: "main", weight: 1 }],
  });
  const form = await operator.get("upstreams/one?name=main");
  assert.doesNotMatch(form.html, /main-key/);
  assert.match(form.html, /HTTP-Referer: https:\/\/my\.app/);
  const known = hiddenFields(form.html, "/upstreams/one");
  const { name: _, apiKey: __, ...rest } = upstream;
  await operator.submit("upstreams/one", { ...known, ...rest, connectMs: "", models: "upstream" });
  const changed = (await settings(world)).upstreams.main;
  assert.deepEqual([changed.apiKey, changed.models, changed.timeouts], [
    { set: true },
    "upstream",
    undefined,
  ]);
  const used = await operator.post("upstreams/one", { ...known, action: "remove" });
  assert.equal(used.status, 400);
  assert.match(textOf(used.html), /names no upstream/);
  const again = await operator.post("upstreams/route", { ...route, targets: "main b" });
  assert.match(textOf(again.html), /There is a route ‘smart’ already/);
  const shown = await operator.get("upstreams/route?model=smart");
  assert.match(shown.html, /main a 3\nmain/);
  const model = hiddenFields(shown.html, "/upstreams/route");
  await operator.submit("upstreams/route", { ...model, action: "remove" });
  await operator.submit("upstreams/one", { ...known, action: "remove" });
  const { upstreams, routes } = await settings(world);
  assert.deepEqual([upstreams, routes], [{}, {}]);
});

for (
  const [path, form, told] of [
    ["upstreams/one", { ...upstream, url: "ftp://x" }, /must be an http or https URL/],
    ["upstreams/one", { ...upstream, url: "" }, /is required/],
    [
      "upstreams/one",
      { ...upstream, url: "https://main.test/v1/messages" },
      /write 'https:\/\/main\.test\/v1'/,
    ],
    ["upstreams/one", { ...upstream, headers: "nonsense" }, /‘nonsense’ is not a header/],
    ["upstreams/one", { ...upstream, connectMs: "soon" }, /must be a whole number, not 'soon'/],
    ["upstreams/route", { model: "m", targets: "main a b c" }, /‘main a b c’ is not a target/],
    ["upstreams/route", { model: "m", targets: "nowhere" }, /names no upstream/],
    ["upstreams/route", { model: "m", targets: "" }, /targets/],
  ] as const
) {
  Deno.test(`console: ${path} says what is wrong, and keeps what was typed: ${told}`, async () => {
    using world = await createWorld();
    const operator = await signedIn(world, adminKey);
    const { status, html } = await operator.post(path, form);
    assert.equal(status, 400);
    assert.match(textOf(html), told);
    const typed = Object.values(form).find((value) => value.length > 8) ?? "";
    assert.ok(html.includes(typed.split("\n")[0] ?? ""));
  });
}

Deno.test("console: an owner sees upstreams, their share and their cost, and changes nothing", async () => {
  using world = await createWorld({
    project: {
      upstreams: { main: { url: "https://main.example/v1", apiKey: "main-key" } },
      routes: { smart: { targets: [{ upstream: "main", model: "a" }] } },
      pricing: { models: routedModels },
    },
  });
  await world.deposit("ada", "1");
  replies(world, { main: () => completion({ model: "a" }) });
  await chat(world, { model: "smart" });
  await world.deps.committer.flush();
  const owner = await signedIn(world);
  const { html } = await owner.get("upstreams");
  assert.match(textOf(html), /main a asked as usual 100 % 1 0 % 0 ms/);
  assert.doesNotMatch(html, /main-key|Add an upstream/);
  for (const path of ["upstreams/one", "upstreams/route"]) {
    assert.equal((await owner.get(path)).status, 403);
    assert.equal((await owner.post(path, { ...upstream, name: "more" })).status, 403);
  }
  assert.deepEqual(Object.keys((await settings(world)).upstreams), ["main"]);
});
