import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { projectKey } from "../../src/store/keys.ts";
import { subscriptionKey } from "../../src/store/delivery_keys.ts";
import { put } from "../support/verify.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const env = { SECRETS_KEY: btoa("a".repeat(32)) };
const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
const main = { url: "https://one.test/v1", apiKey: "sk-one", headers: { "x-team": "a" } };
const full: Body = {
  ownerUserId: "owner-2",
  topUpUrl: "https://my.app/topup?user={user}",
  userHeader: "X-OpenWebUI-User-Id",
  allowedFields: ["plugins"],
  messages: { en: { busy: "Wait. {{url}}" } },
  topUp: { amounts: ["3"], min: "2", max: "4", checkoutUrl: "https://my.app/pay" },
  trialCredits: "1.5",
  lowBalance: "0.5",
  limits: {
    user: { requestsPerMinute: 9, spendPerDay: "5" },
    users: { ada: { spendPerDay: "unlimited" } },
    key: { concurrent: 8 },
  },
  upstream: { url: "https://own.test/v1", apiKey: "sk-own" },
  upstreams: {
    main,
    spare: { provider: "openrouter", apiKey: "sk-spare" },
    open: { url: main.url },
  },
  routes: { smart: { targets: [{ upstream: "main", model: "a" }, { upstream: "spare" }] } },
  responseCache: { enabled: true, maxAgeSeconds: 60, costFactor: "0.25", scope: "project" },
  brand: { accent: "#aa0055", logoUrl: "https://my.app/logo.png" },
  alerts: { emails: ["owner@my.app"], errorRate: { percent: 5 } },
  stripe,
};

const pathOf = ({ projectId }: World) => `/v1/admin/projects/${projectId}`;
const change = (world: World, body: Body) =>
  world.json(pathOf(world), { method: "PATCH", key: adminKey, body });
const read = async (world: World): Promise<Body> =>
  (await world.json(pathOf(world), { key: adminKey })).body.project;

async function storedRow(world: World): Promise<Body> {
  const { value } = await world.deps.kv.get(projectKey(world.projectId));
  return fromBytes<Body>(value ?? assert.fail());
}

async function eventsOf(world: World): Promise<Body[]> {
  const { body } = await world.json(`${pathOf(world)}/audit`, { key: adminKey });
  return body.actions;
}

/** Sends something back, and fails if anything stored is another than before. */
async function assertKept(world: World, body: Body, what: string): Promise<void> {
  const { updatedAt: _, ...before } = await storedRow(world);
  const trail = await eventsOf(world);
  const { status, body: answer } = await change(world, body);
  assert.equal(status, 200, `${what}: ${JSON.stringify(answer)}`);
  const { updatedAt: __, ...after } = await storedRow(world);
  assert.deepEqual(after, before, what);
  assert.deepEqual(await eventsOf(world), trail, `${what}: nothing for the audit trail`);
}

Deno.test("round trip: a project that is sent back as it was read keeps every secret, byte by byte", async () => {
  using world = await createWorld({ env, project: full });
  const { apiKey: key } = world;
  const subscription = { url: "https://hooks.test/", events: ["updated"] };
  await world.json("/v1/webhooks/subscriptions", { key, body: subscription });
  const listed = await world.json("/v1/admin/projects", { key: adminKey });
  const changed = await change(world, { name: "Renamed" });
  const answers: [string, Body][] = [
    ["what GET gives", await read(world)],
    ["what PATCH gives", changed.body.project],
    ["an item of the list", { ...listed.body.projects[0], name: "Renamed" }],
  ];
  for (const [what, project] of answers) {
    await assertKept(world, project, what);
    for (const [name, value] of Object.entries(project)) {
      await assertKept(world, { [name]: value }, `${what}: ${name}`);
    }
    for (const [name, value] of Object.entries(project.upstreams)) {
      await assertKept(world, { upstreams: { [name]: value } }, `${what}: ${name}`);
    }
  }
  const { upstream, upstreams, stripe } = await storedRow(world);
  for (const sealed of [upstream.apiKey, upstreams.main.apiKey, stripe.webhookSecret]) {
    assert.equal(typeof sealed.sealed, "string");
  }
});

Deno.test("round trip: so does one of 0.9.0, which lacks settings", async () => {
  using world = await createWorld({ env, project: { name: "Old" } });
  const { keepResponses: _, unconfirmedEmails: __, paywallOnJson: _p, ...older } = await storedRow(
    world,
  );
  await put(world, projectKey(world.projectId), toBytes(older));
  const [before, trail] = [await read(world), await eventsOf(world)];
  assert.equal((await change(world, before)).status, 200);
  const { updatedAt: ___, ...after } = await read(world);
  assert.deepEqual({ ...after, updatedAt: before.updatedAt }, before);
  assert.deepEqual(await eventsOf(world), trail);
});

Deno.test("round trip: a project without any secrets, also as the settings of a new one", async () => {
  using world = await createWorld({ env });
  await assertKept(world, await read(world), "a new project");
  const { body } = await world.json("/v1/admin/projects", {
    key: adminKey,
    body: { name: "Copy", ...copyable(await read(world)) },
  });
  assert.equal(body.project?.name, "Test", JSON.stringify(body));
});

/** What a new project takes of another one. */
function copyable({ id: _, status: __, createdAt: ___, updatedAt: ____, ...rest }: Body): Body {
  return rest;
}

Deno.test("round trip: a secret is shown as an object, and null where there is none", async () => {
  using world = await createWorld({ env, project: full });
  const { upstream, upstreams, stripe } = await read(world);
  assert.deepEqual(upstream.apiKey, { set: true });
  assert.deepEqual([upstreams.main.apiKey, upstreams.open.apiKey], [{ set: true }, null]);
  assert.deepEqual(stripe, { secretKey: { set: true }, webhookSecret: { set: true } });
});

Deno.test("round trip: beside a secret that stays, others change", async () => {
  using world = await createWorld({ env, project: full });
  const before = await storedRow(world);
  const project = await read(world);
  project.upstream.url = "https://own.test/v2";
  project.upstreams.main.apiKey = "sk-another";
  project.stripe.webhookSecret = "whsec_another";
  assert.equal((await change(world, project)).status, 200);
  const after = await storedRow(world);
  assert.deepEqual(after.upstream, { url: "https://own.test/v2", apiKey: before.upstream.apiKey });
  assert.notDeepEqual(after.upstreams.main.apiKey, before.upstreams.main.apiKey);
  assert.deepEqual(after.upstreams.spare, before.upstreams.spare);
  assert.deepEqual(after.stripe.secretKey, before.stripe.secretKey);
  assert.notDeepEqual(after.stripe.webhookSecret, before.stripe.webhookSecret);
  const [{ detail }] = await eventsOf(world) as [Body];
  assert.deepEqual(detail.fields, ["upstream", "upstreams", "stripe"]);
  // The key of one Stripe account never meets the webhook of another one unseen.
  for (const stripe of [{ webhookSecret: "whsec_third" }, { secretKey: "sk_test_another" }, {}]) {
    assert.equal((await change(world, { stripe })).status, 400);
  }
});

Deno.test("round trip: a subscription that is sent back keeps its secrets, byte by byte", async () => {
  using world = await createWorld({ env });
  const { body: made } = await world.json("/v1/webhooks/subscriptions", {
    body: {
      url: "https://hooks.test/",
      events: ["updated"],
      customHeaders: { "X-Token": "a secret of the receiver" },
    },
  });
  const { id } = made.subscription;
  const secretsOf = async () => {
    const { value } = await world.deps.kv.get(subscriptionKey(world.projectId, id));
    const { secret, oldSecrets, customHeaders } = fromBytes<Body>(value ?? assert.fail());
    return { secret, oldSecrets, customHeaders };
  };
  const before = await secretsOf();
  assert.equal(typeof before.customHeaders.sealed, "string");
  const path = `${pathOf(world)}/subscriptions`;
  const { body: { subscriptions: [shown] } } = await world.json(path, { key: adminKey });
  const parts: Body[] = Object.entries(shown).map(([name, value]) => ({ [name]: value }));
  for (const body of [shown, ...parts]) {
    const options = { method: "PATCH", key: adminKey, body };
    const { status } = await world.json(`${path}/${id}`, options);
    assert.ok(status === 200 || status === 400, `${status}`);
    assert.deepEqual(await secretsOf(), before, JSON.stringify(body));
  }
});

const kept = { set: true };
const refused: [string, Body, string][] = [
  ["a key that is not stored", { upstreams: { open: { apiKey: kept } } }, "upstreams.open.apiKey"],
  [
    "a key of a new upstream",
    { upstreams: { fresh: { url: "https://x.test/v1", apiKey: kept } } },
    "upstreams.fresh.apiKey",
  ],
  [
    "a key for another host",
    { upstream: { url: "https://two.test/v1", apiKey: kept } },
    "upstream.apiKey",
  ],
  ["that none is set", { upstream: { apiKey: { set: false } } }, "upstream.apiKey"],
  ["more than that", { upstream: { apiKey: { set: true, text: "sk" } } }, "upstream.apiKey.text"],
  ["a list", { stripe: { secretKey: [kept] } }, "stripe.secretKey"],
  ["another id", { id: "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7" }, "id"],
  ["another currency", { currency: "eur" }, "currency"],
  ["another mode", { mode: "shared" }, "mode"],
  ["another status", { status: "archived" }, "status"],
  ["another time of creation", { createdAt: "2020-01-01T00:00:00.000Z" }, "createdAt"],
];
for (const [what, body, param] of refused) {
  Deno.test(`round trip: ${what} is refused, and nothing changes`, async () => {
    using world = await createWorld({ env, project: full });
    const before = await storedRow(world);
    const { status, body: { error } } = await change(world, { name: "Other", ...body });
    assert.deepEqual([status, error?.param], [400, param], error?.message);
    assert.deepEqual(await storedRow(world), before);
  });
}

const masks = ["set", "***", "••••", "********", "................", "sk-...", "sk-****abcd", "…"];
const secretSettings: [string, (secret: string) => Body][] = [
  ["upstream", (apiKey) => ({ upstream: { apiKey } })],
  ["upstreams", (apiKey) => ({ upstreams: { main: { apiKey } } })],
  ["stripe.secretKey", (secretKey) => ({ stripe: { ...stripe, secretKey } })],
  ["stripe.webhookSecret", (webhookSecret) => ({ stripe: { ...stripe, webhookSecret } })],
  ["stripe.webhookSecret, as a list", (one) => ({ stripe: { ...stripe, webhookSecret: [one] } })],
  [
    "stripe.webhookSecret, of two",
    (one) => ({ stripe: { ...stripe, webhookSecret: `whsec_12,${one}` } }),
  ],
];
for (const [what, bodyOf] of secretSettings) {
  Deno.test(`round trip: what stands in the place of a secret never becomes ${what}`, async () => {
    using world = await createWorld({ env, project: full });
    const before = await storedRow(world);
    for (const mask of masks) {
      const { status } = await change(world, bodyOf(mask));
      assert.equal(status, 400, mask);
      const made = await world.json("/v1/admin/projects", {
        key: adminKey,
        body: { ...full, name: "New", upstream: { ...full.upstream, apiKey: mask } },
      });
      assert.equal(made.status, 400, mask);
    }
    assert.deepEqual(await storedRow(world), before);
  });
}

Deno.test("round trip: a new project keeps no secret, and says so", async () => {
  using world = await createWorld({ env, project: full });
  const body = { ...copyable(await read(world)), name: "Copy" };
  const { status, body: { error } } = await world.json("/v1/admin/projects", {
    key: adminKey,
    body,
  });
  assert.deepEqual([status, error.param], [400, "upstream.apiKey"]);
  assert.match(error.message, /none is stored/);
});

Deno.test("round trip: a subscription made from what another one shows has its headers", async () => {
  using world = await createWorld({ env });
  const make = (body: Body) => world.json("/v1/webhooks/subscriptions", { body });
  const customHeaders = { "X-Token": "a secret of the receiver" };
  const url = "https://hooks.test/";
  const { body: first } = await make({ url, events: ["updated"], customHeaders });
  const path = `/v1/webhooks/subscriptions/${first.subscription.id}`;
  const { body: { subscription } } = await world.json(path);
  const second = await make({
    url,
    events: ["updated"],
    customHeaders: subscription.customHeaders,
  });
  assert.deepEqual(second.body.subscription.customHeaders, customHeaders);
  const masked = await make({ url, events: ["updated"], secret: "*".repeat(20) });
  assert.deepEqual([masked.status, masked.body.error.param], [400, "secret"]);
});
