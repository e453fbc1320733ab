import assert from "node:assert/strict";
import { chat } from "../support/chat.ts";
import { formFields, hiddenFields, signedIn, textOf } from "../support/console.ts";
import { failing, replies, twoUpstreams } from "../support/routing.ts";
import { completion } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const own = { upstream: { url: "https://own.example/v1", apiKey: "own-key", onAbort: "drain" } };

const settings = async (world: World): Promise<Body> =>
  (await operate(world, "", { method: "GET" })).body.project;

Deno.test("console: the upstream that a project was created with is shown, changed and removed", async () => {
  using world = await createWorld({ project: own });
  const operator = await signedIn(world, adminKey);
  const { html } = await operator.get("upstreams");
  assert.match(
    textOf(html),
    /of this project https:\/\/own\.example\/v1 set all Change Test/,
  );
  assert.doesNotMatch(html, /own-key/);
  const page = await operator.get("upstreams/usual");
  const fields = formFields(page.html, "/upstreams/usual");
  assert.deepEqual([fields.url, fields.apiKey], ["https://own.example/v1", ""]);
  const kept = await operator.submit("upstreams/usual", { ...fields, totalMs: "9000" });
  assert.match(textOf(kept.html), /Requests without a route go there from now on\. Test it\./);
  const stored = (await settings(world)).upstream;
  assert.deepEqual([stored.apiKey, stored.timeouts, stored.onAbort], [
    { set: true },
    { totalMs: 9000 },
    "drain",
  ]);
  await operator.submit("upstreams/usual", {
    ...fields,
    url: "https://new.example/v1",
    apiKey: "new-key",
  });
  await world.deposit("ada", "1");
  await chat(world);
  const [{ url, headers } = assert.fail()] = world.upstream.calls;
  assert.match(url, /^https:\/\/new\.example\//);
  assert.equal(headers.get("authorization"), "Bearer new-key");
  const moved = await operator.submit("upstreams/usual", {
    ...fields,
    url: "https://moved.example/v1",
  });
  assert.match(textOf(moved.html), /Saved, without a key: the stored one was for another host/);
  assert.equal((await settings(world)).upstream.apiKey, null);
  const removed = await operator.submit("upstreams/usual", { action: "remove" });
  assert.match(textOf(removed.html), /go to the server’s upstream.*of this server https:/);
  assert.equal((await settings(world)).upstream, null);
});

for (
  const [form, told] of [
    [{ url: "ftp://x.example" }, /must be an http or https URL/],
    [{ url: "" }, /is required/],
    [{ url: "https://x.example/v1/chat/completions" }, /write 'https:\/\/x\.example\/v1'/],
  ] as const
) {
  Deno.test(`console: a usual upstream that is wrong changes nothing: ${told}`, async () => {
    using world = await createWorld({ project: own });
    const operator = await signedIn(world, adminKey);
    const { status, html } = await operator.post("upstreams/usual", form);
    assert.equal(status, 400);
    assert.match(textOf(html), told);
    assert.equal((await settings(world)).upstream.url, own.upstream.url);
  });
}

Deno.test("console: a test request shows the text, and charges nobody", async () => {
  using world = await createWorld({ project: { ...own, upstreams: twoUpstreams } });
  const operator = await signedIn(world, adminKey);
  const { html } = await operator.get("upstreams/test");
  assert.equal(formFields(html, "/upstreams/test").model, "test-model");
  const done = await operator.post("upstreams/test", { model: "test-model" });
  assert.equal(done.status, 200);
  assert.match(textOf(done.html), /answered Status 200 Format chat Time \d+ ms Text Hello there/);
  const named = await operator.get("upstreams/test?name=spare");
  await operator.post("upstreams/test", {
    ...hiddenFields(named.html, "/upstreams/test"),
    model: "b",
  });
  assert.deepEqual(
    world.upstream.calls.map(({ url, body, headers }) => [
      url,
      body.model,
      headers.get("authorization"),
    ]),
    [
      ["https://own.example/v1/chat/completions", "test-model", "Bearer own-key"],
      ["https://spare.example/v1/chat/completions", "b", "Bearer spare-key"],
    ],
  );
  const trail = textOf((await operator.get("audit")).html);
  assert.match(trail, /The operator sent a test request for b to the upstream spare/);
  assert.match(trail, /The operator sent a test request for test-model to the upstream default/);
  const { users } = (await operate(world, "/users", { method: "GET" })).body;
  assert.deepEqual(users, []);
});

const formatted = {
  messages: [
    { content: [{ type: "thinking", thinking: "x" }, { type: "text", text: "OK" }] },
    /Format messages .* Text OK/,
  ],
  responses: [
    { output: [{ type: "reasoning" }, { content: [{ type: "output_text", text: "OK" }] }] },
    /Format responses .* Text OK/,
  ],
} as const;
for (const [format, [body, told]] of Object.entries(formatted)) {
  Deno.test(`console: a test request to an upstream that speaks ${format}`, async () => {
    const upstream = { url: "https://own.example/v1", formats: [format] };
    using world = await createWorld({ project: { upstream } });
    world.upstream.reply(() => Response.json(body));
    const operator = await signedIn(world, adminKey);
    const { html } = await operator.post("upstreams/test", { model: "m" });
    assert.match(textOf(html), told);
    assert.match(world.upstream.calls[0]?.url ?? "", new RegExp(`/v1/${format}$`));
  });
}

Deno.test("console: a test request shows the error of the upstream, without the key", async () => {
  using world = await createWorld({ project: own });
  const operator = await signedIn(world, adminKey);
  const refused = { error: { message: "Incorrect API key provided: own-key" } };
  const cases: [() => Response | Promise<Response>, RegExp][] = [
    [() => Response.json(refused, { status: 401 }), /failed Status 401 .*Incorrect API key prov/],
    [() => new Response("<html>down", { status: 503 }), /failed Status 503 .*<html>down/],
    [failing(404), /failed Status 404 .*Error down/],
    [() => Response.json({ hello: 1 }), /failed Status 200 .*Error \{"hello":1\}/],
    [() => Promise.reject(new Error("ECONNREFUSED")), /no response .*could not be reached/],
  ];
  for (const [reply, told] of cases) {
    world.upstream.reply(reply);
    const { status, html } = await operator.post("upstreams/test", { model: "test-model" });
    assert.equal(status, 200);
    assert.match(textOf(html), told);
    assert.doesNotMatch(html, /own-key/);
  }
  assert.equal((await operator.post("upstreams/test", { model: " " })).status, 400);
  assert.equal((await operator.post("upstreams/test", { model: "m", name: "no" })).status, 404);
});

Deno.test("console: another upstream says that nothing changes until a route leads to it", async () => {
  using world = await createWorld({ project: own });
  const operator = await signedIn(world, adminKey);
  const added = await operator.submit("upstreams/one", {
    name: "main",
    url: "https://main.example/v1",
  });
  assert.match(textOf(added.html), /Nothing changes yet: no route leads to this upstream/);
  assert.match(textOf(added.html), /any none: it is not used Test/);
  const routed = await operator.submit("upstreams/route", { model: "*", targets: "main" });
  assert.match(textOf(routed.html), /none: the route \* has them/);
  assert.doesNotMatch(textOf(routed.html), /it is not used/);
  await operate(world, "", {
    method: "PATCH",
    body: { upstreams: { main: { onAbort: "drain" } } },
  });
  const form = formFields((await operator.get("upstreams/one?name=main")).html, "/upstreams/one");
  const changed = await operator.submit("upstreams/one", form);
  assert.doesNotMatch(textOf(changed.html), /Nothing changes yet/);
  assert.equal((await settings(world)).upstreams.main.onAbort, "drain");
});

Deno.test("console: an owner sees the usual upstream, and neither changes nor tests it", async () => {
  using world = await createWorld({ project: own });
  const owner = await signedIn(world);
  const { html } = await owner.get("upstreams");
  assert.match(textOf(html), /of this project https:\/\/own\.example\/v1 set all/);
  assert.doesNotMatch(html, /upstreams\/(usual|test)/);
  replies(world, { own: () => completion() });
  for (const path of ["upstreams/usual", "upstreams/test"]) {
    assert.equal((await owner.get(path)).status, 403);
    assert.equal((await owner.post(path, { url: "https://x.example", model: "m" })).status, 403);
  }
  assert.deepEqual(world.upstream.calls, []);
});
