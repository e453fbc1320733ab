import assert from "node:assert/strict";
import type { Mail } from "../../src/deps.ts";
import { confirmAddresses } from "../support/alerts.ts";
import { storedRows } from "../support/books.ts";
import { signedIn, Visitor } from "../support/console.ts";
import { ownerStripe } from "../support/payments.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

/** A request of the operator's that changes something, or reads data out. */
interface AuditedRequest {
  /** The action that is recorded. */
  action: string;
  body?: unknown;
  query?: string;
  /** In the instance's own trail, and not in the project's. */
  instance?: true;
}

const project = "/v1/admin/projects/:projectId";
const subscription = `${project}/subscriptions/:subscriptionId`;
const user = `${project}/users/:user`;
const prices = { openai: { "gpt-9": { input: "1", output: "4" } } };

const auditedRequests: Readonly<Record<string, AuditedRequest>> = {
  "POST /v1/admin/projects": {
    action: "project.created",
    body: { name: "Another" },
    instance: true,
  },
  [`PATCH ${project}`]: { action: "project.updated", body: { name: "Renamed" } },
  [`POST ${project}/archive`]: { action: "project.archived", body: {} },
  [`POST ${project}/keys`]: { action: "key.created", body: {} },
  [`DELETE ${project}/keys/:keyId`]: { action: "key.revoked" },
  "GET /v1/admin/backup": { action: "backup.created", instance: true },
  "POST /v1/admin/secrets/reseal": { action: "secrets.resealed", body: {}, instance: true },
  [`POST ${project}/alerts/test-email`]: { action: "alerts.tested", body: {} },
  "POST /v1/admin/catalogue": {
    action: "catalogue.refreshed",
    body: { date: "2026-11-25", prices },
    instance: true,
  },
  [`GET ${project}/archive/entries`]: {
    action: "data.exported",
    query: "?before=2020-01-01T00:00:00Z",
  },
  [`POST ${project}/archive/entries`]: {
    action: "data.archived",
    body: {
      before: "2020-01-01T00:00:00Z",
      sha256: "0".repeat(64),
      entries: [["act_01KDVDNA0047C4FEZDQK8YZG0Y", "0".repeat(32)]],
    },
  },
  [`GET ${project}/export`]: { action: "data.exported", query: "?what=users&format=csv" },
  [`GET ${project}/statement`]: { action: "data.exported" },
  [`GET ${project}/balances`]: { action: "data.exported" },
  [`POST ${user}/deposit`]: { action: "deposit", body: { amount: "1" } },
  [`POST ${user}/charge`]: { action: "charge", body: { amount: "1" } },
  [`POST ${user}/refund`]: { action: "refund", body: { activityId: ":activityId" } },
  [`POST ${user}/forget`]: { action: "user.forgotten", body: { forfeit: true } },
  [`PATCH ${subscription}`]: { action: "webhook.rotated", body: { rotateSecret: true } },
  [`POST ${subscription}/test`]: { action: "webhook.tested", body: {} },
  [`POST ${subscription}/redeliver`]: {
    action: "webhook.redelivered",
    body: { since: "2025-12-31T00:00:00Z" },
  },
  [`POST ${project}/deliveries/:deliveryId/redeliver`]: {
    action: "delivery.redelivered",
    body: {},
  },
  [`POST ${project}/stripe/connect`]: {
    action: "project.updated",
    body: { secretKey: ownerStripe.secretKey },
  },
};

/** Requests that change nothing, and read out no more than a page. */
const others = [
  "GET /v1/admin/audit",
  "GET /v1/admin/catalogue",
  "GET /v1/admin/projects",
  "GET /v1/admin/verify",
  "POST /v1/admin/catalogue/diff",
  `GET ${project}`,
  `GET ${project}/alerts`,
  `GET ${project}/audit`,
  `GET ${project}/keys`,
  `GET ${project}/redeliveries/:jobId`,
  `GET ${project}/requests`,
  `GET ${project}/subscriptions`,
  `GET ${project}/summary`,
  `GET ${project}/users`,
  `GET ${user}`,
  `GET ${user}/activities`,
  "GET /v1/admin/wallets",
  "GET /v1/admin/wallets/:walletId",
  // What they record is in tests/wallets/joins_test.ts.
  "DELETE /v1/admin/wallets/:walletId/join",
  "POST /v1/admin/wallets/:walletId/join",
  // What they record, if anything, is in tests/payments/reconcile_test.ts.
  "POST /v1/admin/stripe/reconcile",
  `POST ${project}/stripe/reconcile`,
];

/** A world with something to act on, and what the parameters of its paths stand for. */
async function preparedWorld(): Promise<[World, fill: (text: string) => string]> {
  const stream = () => new Blob(["pages"]).stream();
  const mails: Mail[] = [];
  const world = await createWorld({
    project: { alerts: { emails: ["owner@my.app"] } },
    sendMail: (mail) => Promise.resolve(void mails.push(mail)),
    takeSnapshot: () => Promise.resolve({ bytes: 5, stream: stream() }),
  });
  await confirmAddresses(world, mails);
  const { id: subscriptionId } = await subscribe(world);
  await world.deposit("ada", "5");
  await deliver(world);
  const [delivery] = await logs(world);
  const { key } = (await operate(world, "/keys", { body: {} })).body;
  const [entry] = await world.activities("ada");
  const values: Record<string, string> = {
    ...{ projectId: world.projectId, subscriptionId, user: "ada", keyId: key.id },
    ...{ deliveryId: delivery?.id, activityId: entry?.id },
  };
  return [
    world,
    (text) => Object.entries(values).reduce((at, [name, id]) => at.replace(`:${name}`, id), text),
  ];
}

const address = "203.0.113.7";

/** A request with `ADMIN_KEY`, from a client's address. */
async function ask(world: World, method: string, path: string, body?: unknown, key = adminKey) {
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const response = await world.app.fetch(request, { remoteAddr: { hostname: address } });
  return { status: response.status, text: await response.text() };
}

async function trailOf(world: World, isInstance: boolean, query = ""): Promise<Body[]> {
  const path = isInstance ? "/v1/admin" : `/v1/admin/projects/${world.projectId}`;
  const { body } = await world.json(`${path}/audit?limit=100${query}`, { key: adminKey });
  return body.actions;
}

Deno.test("audit: every route of the operator either records a row or is known to change nothing", async () => {
  using world = await createWorld();
  const routes = Object.entries(world.app.routes)
    .filter(([path]) => path.startsWith("/v1/admin/"))
    .flatMap(([path, route]) =>
      ["GET", "POST", "PATCH", "DELETE"].filter((method) => method in route)
        .map((method) => `${method} ${path}`)
    );
  assert.deepEqual(routes.sort(), [...Object.keys(auditedRequests), ...others].sort());
});

for (const [route, { action, body, query = "", instance }] of Object.entries(auditedRequests)) {
  Deno.test(`audit: ${route} records ${action}, with the operator's address`, async () => {
    const [world, fill] = await preparedWorld();
    using _ = world;
    const [method = "", path = ""] = route.split(" ");
    const before = (await trailOf(world, instance === true)).length;
    const sent = body === undefined ? undefined : JSON.parse(fill(JSON.stringify(body)));
    const answer = await ask(world, method, fill(path) + query, sent);
    assert.ok(answer.status < 300, answer.text);
    const rows = await trailOf(world, instance === true);
    assert.equal(rows.length, before + 1, JSON.stringify(rows));
    assert.deepEqual([rows[0]?.action, rows[0]?.actor.id, rows[0]?.address], [
      action,
      "operator",
      address,
    ]);
  });
}

Deno.test("audit: wrong admin keys and failed sign-ins are a row with a count, without the key", async () => {
  using world = await createWorld();
  const tried = `not-the-admin-key-${"x".repeat(30)}`;
  for (let n = 0; n < 25; n++) {
    assert.equal((await ask(world, "GET", "/v1/admin/projects", undefined, tried)).status, 401);
  }
  const visitor = new Visitor(world, "198.51.100.4");
  for (let n = 0; n < 12; n++) await visitor.post("/console/sign-in", { key: tried });
  await world.json("/v1/admin/projects", { key: null });
  await world.app.sweep();
  const refused = async () =>
    (await trailOf(world, true, "&actor=unknown")).map((row) => [
      row.action,
      row.address,
      row.detail.count,
      row.via,
    ]);
  assert.deepEqual(await refused(), [
    ["console.sign_in_refused", "198.51.100.4", 12, "console"],
    ["admin.key_refused", address, 25, "api"],
  ]);
  await world.clock.advance(61_000);
  await ask(world, "GET", "/v1/admin/projects", undefined, tried);
  assert.deepEqual((await refused())[0], ["admin.key_refused", address, 1, "api"], "at once");
  const stored = (await storedRows(world)).map(({ value }) =>
    new TextDecoder().decode(value ?? new Uint8Array())
  );
  assert.ok(stored.every((text) => !text.includes(tried)));
});

Deno.test("audit: a wrong key for an action of the console is in the trail of its project", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  await owner.stayFor(11 * 60_000);
  for (let n = 0; n < 3; n++) await owner.post("archive", { sessionKey: "sk_guess" });
  await world.app.flush();
  const [row] = await trailOf(world, false, "&action=console.key_refused");
  assert.deepEqual([row?.actor.type, row?.detail.count], ["key", 3]);
});

Deno.test("audit: attempts from many addresses leave a bounded number of rows, and all are counted", async () => {
  using world = await createWorld();
  const wrong = (host: string) =>
    world.app.fetch(
      new Request("http://localhost/v1/admin/projects", { headers: { "x-api-key": "wrong" } }),
      { remoteAddr: { hostname: host } },
    );
  for (let n = 0; n < 200; n++) await (await wrong(`2001:db8::${n.toString(16)}`)).body?.cancel();
  await world.app.flush();
  const rows = await trailOf(world, true, "&action=admin.key_refused");
  assert.equal(rows.length, 11);
  assert.equal(rows.reduce((sum, { detail }) => sum + detail.count, 0), 200);
  assert.equal(rows[0]?.address, undefined, "the others share a row");
});

Deno.test("audit: a store that fails leaves a wrong key refused as before", async () => {
  let fails = false;
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      atomic: (write) => fails ? Promise.reject(new Error("disk full")) : kv.atomic(write),
    }),
  });
  fails = true;
  assert.equal((await ask(world, "GET", "/v1/admin/projects", undefined, "wrong")).status, 401);
  const signedOut = await new Visitor(world).post("/console/sign-in", { key: "wrong" });
  assert.equal(signedOut.status, 401);
});
