import assert from "node:assert/strict";
import { noResponseCache } from "../../src/projects/response_cache_schema.ts";
import { noAlerts } from "../../src/projects/alerts_schema.ts";
import { noBrand } from "../../src/projects/brand_schema.ts";
import {} from "../../src/base/json.ts";
import { Secret } from "../../src/base/secret.ts";
import { noLimits } from "../../src/projects/schema.ts";
import { createSecrets } from "../../src/store/secrets.ts";
import { chatStream } from "../support/chat.ts";
import { chatBody, chatPath, storeAsText, storedRows } from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { chunk, fedStream, usageChunk } from "../support/upstream.ts";
import { adminKey, type Body, createWorld, testPricing, type World } from "../support/world.ts";

const projectsPath = "/v1/admin/projects";

function admin(world: World, path: string, options: Record<string, unknown> = {}) {
  return world.json(`${projectsPath}${path}`, { key: adminKey, ...options });
}

Deno.test("projects: creating one returns its settings and a first key", async () => {
  using world = await createWorld();
  const { status, body, response } = await admin(world, "", {
    body: { name: " Shop ", ownerUserId: "owner-1", currency: "eur", pricing: testPricing },
  });
  assert.equal(status, 201);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.match(body.apiKey, /^sk_[0-9A-Za-z]{43}$/);
  const { id, ...rest } = body.project;
  assert.match(id, /^pw_[0-9A-Z]{26}$/);
  assert.deepEqual(rest, {
    name: "Shop",
    ownerUserId: "owner-1",
    currency: "eur",
    mode: "default",
    pricing: {
      catalogue: false,
      markupPercent: "0",
      priceFrom: "list",
      requestFee: "0",
      ...testPricing,
    },
    upstream: null,
    upstreams: {},
    routes: {},
    responseCache: noResponseCache,
    requestLogDays: 30,
    keepResponses: "on",
    paywallOnJson: "message",
    brand: noBrand,
    alerts: noAlerts,
    topUpUrl: null,
    userSource: "any",
    userHeader: null,
    maxOutputTokens: null,
    allowedFields: [],
    unknownFields: "refuse",
    billingEvents: true,
    messages: {},
    topUp: { amounts: ["5", "10", "25"], min: "1", max: "1000", checkoutUrl: null },
    stripe: null,
    trialCredits: "0",
    limits: { ...noLimits, user: { ...noLimits.user, concurrent: 64 } },
    lowBalance: null,
    status: "active",
    createdAt: "2026-01-01T00:00:00.000Z",
    updatedAt: "2026-01-01T00:00:00.000Z",
  });
  const read = await admin(world, `/${id}`);
  assert.deepEqual(read.body, { project: body.project });
  assert.equal((await world.json("/v1/user/balance?user=a", { key: body.apiKey })).status, 200);
});

Deno.test("projects: the list pages through all of them by cursor, in order of creation", async () => {
  using world = await createWorld();
  const ids = [world.projectId];
  for (let n = 0; n < 6; n++) {
    await world.clock.advance(5);
    ids.push((await world.makeProject({ name: `p${n}` })).projectId);
  }
  const seen: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const query: string = cursor && `&cursor=${cursor}`;
    const { status, body }: { status: number; body: Body } = await admin(world, `?limit=3${query}`);
    assert.equal(status, 200);
    assert.ok(body.projects.length > 0);
    seen.push(...body.projects.map(({ id }: Body) => id));
    cursor = body.nextCursor;
  }
  assert.deepEqual(seen, ids);
  for (const limit of ["0", "101", "x", ""]) {
    assert.equal((await admin(world, `?limit=${limit}`)).status, 400, limit);
  }
  const long = await admin(world, `?cursor=${"x".repeat(3000)}`);
  assert.ok(long.status < 500, `a cursor too long for a key is ${long.status}`);
});

Deno.test("projects: PATCH replaces what is given and leaves the rest", async () => {
  using world = await createWorld({ project: { topUpUrl: "https://shop.test/{user}" } });
  const before = (await admin(world, `/${world.projectId}`)).body.project;
  await world.clock.advance(1000);
  const changes = { name: "New", pricing: { requestFee: "0.5" }, topUpUrl: null };
  const { status, body } = await admin(world, `/${world.projectId}`, {
    method: "PATCH",
    body: changes,
  });
  assert.equal(status, 200);
  assert.deepEqual(body.project, {
    ...before,
    name: "New",
    pricing: { ...before.pricing, requestFee: "0.5" },
    topUpUrl: null,
    updatedAt: "2026-01-01T00:00:01.000Z",
  });
  await world.deposit("ada", "1");
  await world.json(chatPath, { body: chatBody("ada") });
  assert.equal((await world.balance("ada")).balance, "0.49998", "the new price is charged");
});

const badSettings: [label: string, body: unknown, param: string | null][] = [
  ["no name", {}, "name"],
  ["an empty name", { name: "" }, "name"],
  ["a blank name", { name: "  " }, "name"],
  ["a number for a name", { name: 5 }, "name"],
  ["an unknown field", { name: "x", nmae: "y" }, "nmae"],
  ["an unknown currency", { name: "x", currency: "xyz" }, "currency"],
  ["an upper-case currency", { name: "x", currency: "USD" }, "currency"],
  ["an unknown mode", { name: "x", mode: "other" }, "mode"],
  ["prices as an array", { name: "x", pricing: [] }, "pricing"],
  ["a price as a number", price({ input: 1, output: "1" }), "pricing.models.m.input"],
  ["a negative price", price({ input: "-1", output: "1" }), "pricing.models.m.input"],
  ["a price with an exponent", price({ input: "1e3", output: "1" }), "pricing.models.m.input"],
  [
    "a price with ten decimals",
    price({ input: "0.0000000001", output: "1" }),
    "pricing.models.m.input",
  ],
  ["no price of output", price({ input: "1" }), "pricing.models.m.output"],
  ["an unknown price", price({ input: "1", output: "1", ouput: "1" }), "pricing.models.m.ouput"],
  [
    "no output tokens",
    price({ input: "1", output: "1", maxOutputTokens: 0 }),
    "pricing.models.m.maxOutputTokens",
  ],
  ["a fee as a number", { name: "x", pricing: { requestFee: 1 } }, "pricing.requestFee"],
  ["an upstream that is no address", upstream({ url: "nowhere" }), "upstream.url"],
  ["an upstream that is a file", upstream({ url: "file:///etc/passwd" }), "upstream.url"],
  ["an upstream with credentials", upstream({ url: "https://a:b@x.test" }), "upstream.url"],
  [
    "an upstream's key with a line break",
    upstream({ url: "https://x.test", apiKey: "a\nb" }),
    "upstream.apiKey",
  ],
  ["a script as top-up link", { name: "x", topUpUrl: "javascript:alert(1)" }, "topUpUrl"],
  ["an unknown placeholder", { name: "x", topUpUrl: "https://a.test/{usr}" }, "topUpUrl"],
  ["a doubled one", { name: "x", topUpUrl: "https://a.test/{{user}}" }, "topUpUrl"],
  ["one of the checkout", topUp({ checkoutUrl: "https://a.test/{usr}" }), "topUp.checkoutUrl"],
  ["a least above the most", topUp({ amounts: ["5"], min: "10", max: "2" }), "topUp.max"],
  ["a most below the usual least", topUp({ max: "0.5" }), "topUp.max"],
  ["nothing to choose", topUp({ amounts: ["0.0"] }), "topUp.amounts.0"],
  ["an unknown source of users", { name: "x", userSource: "cookie" }, "userSource"],
  ["a status", { name: "x", status: "archived" }, "status"],
  ["an id", { name: "x", id: "pw_1" }, "id"],
];

function price(model: Record<string, unknown>) {
  return { name: "x", pricing: { models: { m: model } } };
}

function topUp(settings: Record<string, unknown>) {
  return { name: "x", topUp: settings };
}

function upstream(settings: Record<string, unknown>) {
  return { name: "x", upstream: settings };
}

Deno.test("projects: invalid settings are 400, named, and change nothing", async () => {
  using world = await createWorld();
  const before = await storeAsText(world);
  for (const [label, body, param] of badSettings) {
    const answer = await admin(world, "", { body });
    assert.equal(answer.status, 400, `${label}: ${JSON.stringify(answer.body)}`);
    assert.equal(answer.body.error.param, param, label);
    if (label === "no name") continue;
    const change = await admin(world, `/${world.projectId}`, { method: "PATCH", body });
    assert.equal(change.status, 400, `PATCH ${label}: ${JSON.stringify(change.body)}`);
  }
  for (const body of [{ currency: "eur" }, { mode: "shared" }]) {
    const change = await admin(world, `/${world.projectId}`, { method: "PATCH", body });
    assert.equal(change.status, 400, "fixed when the project is made");
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("projects: an error is reported once, and for a name with what is wrong with it", async () => {
  using world = await createWorld();
  const told = async (settings: Body) =>
    (await admin(world, "", { body: { name: "x", ...settings } })).body.error.message;
  const words = { busy: "Wait: {{url}}" };
  assert.equal(
    await told({ messages: { Deutsch: words } }),
    "Invalid 'messages.Deutsch': must be a lowercase language tag.",
  );
  assert.equal(
    await told({ name: 1 }),
    "Invalid 'name': expected string, received number.",
  );
  const price = { input: 0.3, output: "1" };
  for (const settings of [{ lowBalance: 1 }, { pricing: { models: { m: price } } }]) {
    assert.match(await told(settings), /must be a decimal string such as "0\.15"/);
  }
  assert.match(await told({ mode: "own" }), /^Invalid 'mode': must be default or shared/);
});

Deno.test("projects: more than a record can hold is 400", async () => {
  using world = await createWorld();
  const models = Object.fromEntries(
    Array.from({ length: 800 }, (_, n) => [`model-${n}`, {
      input: "1",
      output: "1",
      description: "d".repeat(50),
    }]),
  );
  const { status } = await admin(world, "", { body: { name: "x", pricing: { models } } });
  assert.equal(status, 400);
});

Deno.test("projects: the admin API requires the admin key", async () => {
  using world = await createWorld();
  const routes: [method: string, path: string][] = [
    ["GET", ""],
    ["POST", ""],
    ["GET", `/${world.projectId}`],
    ["PATCH", `/${world.projectId}`],
    ["POST", `/${world.projectId}/archive`],
    ["GET", `/${world.projectId}/keys`],
    ["POST", `/${world.projectId}/keys`],
    ["DELETE", `/${world.projectId}/keys/key_01ARZ3NDEKTSV4RRFFQ69G5FAV`],
  ];
  const changed = async () =>
    (await storeAsText(world)).split("\n").filter((row) => !row.includes('["audit","instance"'));
  const before = await changed();
  for (const [method, path] of routes) {
    for (const key of [world.apiKey, null, `${adminKey}x`, adminKey.slice(0, -1), "sk_dev"]) {
      const body = method === "GET" ? undefined : { name: "x" };
      const answer = await world.json(`${projectsPath}${path}`, { method, key, body });
      assert.equal(answer.status, 401, `${method} ${path} ${key}`);
      assert.equal(answer.response.headers.get("www-authenticate"), "Bearer");
    }
  }
  assert.deepEqual(await changed(), before, "but for the audit trail");
  assert.equal((await world.json("/v1/user/balance?user=a", { key: adminKey })).status, 401);
});

Deno.test("projects: unknown ids are 404", async () => {
  using world = await createWorld();
  for (const id of ["pw_01ARZ3NDEKTSV4RRFFQ69G5FAV", "pw_", "x", world.apiKey, "pw_%00"]) {
    for (const [method, path] of [["GET", ""], ["GET", "/keys"], ["POST", "/archive"]]) {
      const { status } = await admin(world, `/${id}${path}`, { method });
      assert.equal(status, 404, `${method} ${id}${path}`);
    }
  }
});

Deno.test("projects: an archived one takes no chats, charges or deposits, and tells why", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const charge = await world.json("/v1/user/charge", { body: { user: "ada", amount: "0.25" } });
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const running = await chatStream(world);
  const text = running.text();
  const archived = await admin(world, `/${world.projectId}/archive`, { method: "POST" });
  assert.equal(archived.status, 200);
  assert.equal(archived.body.project.status, "archived");
  const money = { user: "ada", amount: "0.1" };
  for (
    const [path, body] of [
      [chatPath, chatBody("ada")],
      ["/v1/user/charge", money],
      ["/v1/user/balance/deposit", money],
    ] as const
  ) {
    const { status, body: answer } = await world.json(path, { body });
    assert.equal(status, 403, path);
    assert.equal(answer.error.code, "project_archived", path);
  }
  stream.send(chunk({ content: "Hi" }, "stop"));
  stream.send(usageChunk());
  stream.send("[DONE]");
  stream.end();
  assert.match(await text, /\[DONE\]/, "a running answer goes on to its end");
  await settle();
  assert.equal((await world.balance("ada")).balance, "0.74998", "and is charged; reads go on");
  assert.equal((await world.activities("ada")).length, 3);
  const refund = await world.json("/v1/user/refund", {
    body: { user: "ada", activityId: charge.body.activityId },
  });
  assert.equal(refund.status, 200);
  const again = await admin(world, `/${world.projectId}/archive`, { method: "POST" });
  assert.equal(again.status, 200);
});

Deno.test("projects: archiving stops new money and chats in another process at once", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const money = { user: "ada", amount: "1" };
  assert.equal((await other.json("/v1/user/balance/deposit", { body: money })).status, 200);
  await admin(world, `/${world.projectId}/archive`, { method: "POST" });
  assert.equal((await other.json("/v1/user/balance/deposit", { body: money })).status, 403);
  assert.equal((await other.json("/v1/user/charge", { body: money })).status, 403);
  assert.equal((await other.json(chatPath, { body: chatBody("ada") })).status, 403);
});

const upstreamKey = "up-secret-5f0c9a";

Deno.test("projects: an upstream's key is used, never shown, and stored encrypted", async () => {
  using world = await createWorld();
  const made = await admin(world, "", {
    body: {
      name: "x",
      pricing: testPricing,
      upstream: { url: "https://own.test/v1", apiKey: upstreamKey },
    },
  });
  const { id } = made.body.project;
  const shown = [
    made,
    await admin(world, `/${id}`),
    await admin(world, ""),
    await admin(world, `/${id}`, { method: "PATCH", body: { name: "y" } }),
    await admin(world, `/${id}/keys`),
  ];
  for (const { body } of shown) assert.ok(!JSON.stringify(body).includes(upstreamKey));
  const apiKey = { set: true };
  assert.deepEqual(made.body.project.upstream, { url: "https://own.test/v1", apiKey });
  const call = { key: made.body.apiKey };
  await world.json("/v1/user/balance/deposit", { ...call, body: { user: "ada", amount: "1" } });
  assert.equal((await world.json(chatPath, { ...call, body: chatBody("ada") })).status, 200);
  const [sent] = world.upstream.calls;
  assert.equal(sent?.url, "https://own.test/v1/chat/completions");
  assert.equal(sent?.headers.get("authorization"), `Bearer ${upstreamKey}`);
  for (const row of await storedRows(world)) {
    const text = JSON.stringify(row.key) + new TextDecoder().decode(row.value ?? new Uint8Array());
    for (const secret of [upstreamKey, btoa(upstreamKey), made.body.apiKey, world.apiKey]) {
      assert.ok(!text.includes(secret), text);
    }
  }
  assert.ok(!JSON.stringify(world.logged).includes(upstreamKey));
  assert.ok(!JSON.stringify(world.logged).includes(made.body.apiKey));
});

Deno.test("projects: without a SECRETS_KEY an upstream's key is refused", async () => {
  using world = await createWorld({ env: { SECRETS_KEY: "" } });
  const { status, body } = await admin(world, "", {
    body: { name: "x", upstream: { url: "https://own.test/v1", apiKey: upstreamKey } },
  });
  assert.equal(status, 400);
  assert.ok(!body.error.message.includes(upstreamKey));
  assert.equal((await admin(world, "", { body: { name: "x" } })).status, 201);
});

Deno.test("projects: an encrypted secret decrypts in its own row, with its own key, and nowhere else", async () => {
  const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
  const key = btoa("0123456789abcdef0123456789abcdef");
  const secrets = await createSecrets([new Secret(key)], random);
  const other = new Secret(btoa("another key of thirty-two bytes!"));
  const others = await createSecrets([other], random);
  const place = ["project", "pw_1"];
  const sealed = await secrets.seal(upstreamKey, place);
  assert.equal(await secrets.open(sealed, place), upstreamKey);
  assert.notDeepEqual(await secrets.seal(upstreamKey, place), sealed, "a nonce of its own");
  await assert.rejects(secrets.open(sealed, ["project", "pw_2"]));
  await assert.rejects(others.open(sealed, place));
  const last = sealed.sealed.at(-3) === "A" ? "B" : "A";
  const forged = { sealed: sealed.sealed.slice(0, -3) + last + sealed.sealed.slice(-2) };
  await assert.rejects(secrets.open(forged, place));
});
