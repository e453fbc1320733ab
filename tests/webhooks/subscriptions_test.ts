import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { subscriptionKey } from "../../src/store/keys.ts";
import { storedRows } from "../support/books.ts";
import { type Body, createWorld, type World } from "../support/world.ts";
import { put } from "../support/verify.ts";
import { deliver, subscribe, subscriptionsPath } from "../support/webhooks.ts";

const url = "https://hooks.example.com/farebox";

async function read(world: World, id: string) {
  return await world.json(`${subscriptionsPath}/${id}`);
}

Deno.test("subscriptions: a description is limited in characters, whatever they are", async () => {
  using world = await createWorld();
  for (const [given, kept] of [["😀".repeat(600), 512], ["é".repeat(511) + "😀z", 512]] as const) {
    const { description = "" } = await subscribe(world, { description: given });
    assert.equal([...description].length, kept);
    assert.ok(given.startsWith(description));
  }
});

Deno.test("subscriptions: one is created with all its fields, and shows its secret only once", async () => {
  using world = await createWorld();
  const made = await subscribe(world, {
    events: ["balance.*", "archived", "balance.*"],
    description: `  ${"d".repeat(600)}  `,
    customHeaders: { "X-Team": "our-team" },
  });
  assert.match(made.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const now = new Date(world.clock.now()).toISOString();
  const { secret, ...shown } = made;
  assert.deepEqual(shown, {
    id: made.id,
    paywallId: world.projectId,
    url,
    events: ["balance.*", "archived"],
    isActive: true,
    description: "d".repeat(512),
    customHeaders: { "X-Team": "our-team" },
    createdAt: now,
    updatedAt: now,
    secretSuffix: secret.slice(-6),
    createdBy: made.createdBy,
    consecutiveFailures: 0,
    lastDeliveredAt: null,
  });
  assert.match(made.createdBy, /^key_/);
  const again = await read(world, made.id);
  assert.deepEqual([again.status, again.body.subscription], [200, shown]);
  const { body } = await world.json(subscriptionsPath);
  assert.deepEqual(body, { subscriptions: [shown] });
  const stored = (await storedRows(world)).map(({ value }) =>
    new TextDecoder().decode(value ?? undefined)
  )
    .join();
  assert.doesNotMatch(stored, new RegExp(secret.slice(6, 30).replace(/[+/]/g, "\\$&")));
  assert.doesNotMatch(stored, /our-team/, "header values may be secrets");
});

const bad: [label: string, fields: Record<string, unknown>, param: string, says?: RegExp][] = [
  ["no events", { events: [] }, "events"],
  ["events as text", { events: "*" }, "events"],
  ["events that are missing", { events: undefined }, "events"],
  ["101 events", { events: Array(101).fill("archived") }, "events"],
  ["* with others", { events: ["*", "archived"] }, "events", /combine/],
  [
    "an unknown event",
    { events: ["balance.deposit.craeted"] },
    "events",
    /balance\.deposit\.created/,
  ],
  ["an unknown family", { events: ["balanse.*"] }, "events", /balance\.\*/],
  ["a part of a family", { events: ["balanc.*"] }, "events", /balance\.\*/],
  ["half a family", { events: ["balance*"] }, "events"],
  ["a wildcard inside", { events: ["balance.*.created"] }, "events"],
  ["a prefix of a name", { events: ["balance.deposit"] }, "events"],
  ["a number as event", { events: [5] }, "events.0"],
  ["a url that is missing", { url: undefined }, "url"],
  ["a url as number", { url: 5 }, "url"],
  ["a description as number", { description: 5 }, "description"],
  ["11 headers", {
    customHeaders: Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`X-${n}`, "v"])),
  }, "customHeaders"],
  ["headers as list", { customHeaders: ["a"] }, "customHeaders"],
  ["a header twice", { customHeaders: { "X-A": "1", "x-a": "2" } }, "customHeaders"],
  ["a header with a space", { customHeaders: { "X A": "1" } }, "customHeaders"],
  ["a header of a line break", { customHeaders: { "X-A": "1\r\nX-B: 2" } }, "customHeaders"],
  ["a header beyond ASCII", { customHeaders: { "X-A": "é" } }, "customHeaders"],
  ["a header that is too long", { customHeaders: { "X-A": "v".repeat(1025) } }, "customHeaders"],
  ...["Host", "connection", "Content-Type", "content-encoding", "transfer-encoding", "Expect"].map(
    reserved,
  ),
  ...["Cookie", "proxy-authorization", "X-Service-Signature", "webhook-id", "TE", "upgrade"].map(
    reserved,
  ),
  ...["x-forwarded-for", "user-agent", "metadata-flavor", "x-aws-ec2-metadata-token"].map(reserved),
  ["a short secret", { secret: "s".repeat(15) }, "secret"],
  ["a long secret", { secret: "s".repeat(257) }, "secret"],
  ["a secret with a space", { secret: "a secret with spaces" }, "secret"],
  ["an unknown field", { colour: "red" }, "colour"],
];

function reserved(name: string): [string, Record<string, unknown>, string] {
  return [`the reserved header ${name}`, { customHeaders: { [name]: "v" } }, "customHeaders"];
}

Deno.test("subscriptions: an invalid field is 400 with its name, and creates nothing", async () => {
  using world = await createWorld();
  for (const [label, fields, param, says] of bad) {
    const body = { url, events: ["*"], ...fields };
    const answer = await world.json(subscriptionsPath, { body });
    assert.deepEqual([answer.status, answer.body.error?.param], [400, param], label);
    if (says) assert.match(answer.body.error.message, says);
  }
  assert.deepEqual((await world.json(subscriptionsPath)).body, { subscriptions: [] });
});

Deno.test("subscriptions: a deactivated one is kept, marked, and receives nothing", async () => {
  using world = await createWorld();
  const [first, second] = [await subscribe(world), await subscribe(world)];
  for (let time = 0; time < 2; time++) {
    const { status, body } = await world.json(`${subscriptionsPath}/${first.id}`, {
      method: "DELETE",
    });
    assert.equal(status, 200);
    assert.deepEqual([body.deactivated, body.subscription.isActive], [true, false]);
  }
  const idsOf = async (query: string) =>
    (await world.json(`${subscriptionsPath}${query}`)).body.subscriptions
      .map(({ id }: { id: string }) => id);
  assert.deepEqual(await idsOf(""), [first.id, second.id]);
  assert.deepEqual(await idsOf("?status=active"), [second.id]);
  assert.deepEqual(await idsOf("?status=inactive"), [first.id]);
  assert.equal((await world.json(`${subscriptionsPath}?status=both`)).status, 400);
  await world.deposit("ada", "1");
  await deliver(world);
  const told = world.subscriber.received.map(({ body }) => body.delivery.subscriptionId);
  assert.deepEqual(told, [second.id]);
});

Deno.test("subscriptions: they belong to a project, and need its key with the scope webhooks", async () => {
  using world = await createWorld();
  const other = await world.makeProject();
  const { id } = await subscribe(world);
  const path = `${subscriptionsPath}/${id}`;
  const requests: [method: string, path: string, foreign: number][] = [
    ["GET", path, 404],
    ["DELETE", path, 404],
    ["GET", `${subscriptionsPath}/sub_00000000000000000000000000`, 404],
    ["PATCH", path, 405],
  ];
  for (const [method, where, status] of requests) {
    assert.equal((await world.call(where, { method, key: other.apiKey })).status, status, method);
  }
  for (
    const [method, where] of [["GET", path], ["DELETE", path], ["GET", subscriptionsPath]] as const
  ) {
    assert.equal((await world.call(where, { method, key: null })).status, 401);
    assert.equal((await world.call(where, { method, key: "sk_wrong" })).status, 401);
  }
  assert.equal((await world.call("/v1/webhooks/logs", { key: null })).status, 401);
  assert.equal((await read(world, id)).body.subscription.isActive, true);
  const { body } = await world.json(subscriptionsPath, { key: other.apiKey });
  assert.deepEqual(body, { subscriptions: [] });
});

Deno.test("subscriptions: a project has at most 100 active ones", async () => {
  using world = await createWorld();
  for (let n = 0; n < 100; n++) await subscribe(world);
  const { status } = await world.json(subscriptionsPath, { body: { url, events: ["*"] } });
  assert.equal(status, 400);
  const [first] = (await world.json(subscriptionsPath)).body.subscriptions;
  await world.call(`${subscriptionsPath}/${first.id}`, { method: "DELETE" });
  await subscribe(world);
});

Deno.test("subscriptions: without SECRETS_KEY none is created", async () => {
  using world = await createWorld({ env: { SECRETS_KEY: "" } });
  const { status, body } = await world.json(subscriptionsPath, { body: { url, events: ["*"] } });
  assert.deepEqual([status, body.error.code], [400, "secrets_key_missing"]);
});

Deno.test("subscriptions: of deactivated ones the newest are listed, of active ones all", async () => {
  using world = await createWorld();
  const { id: first } = await subscribe(world);
  const { id: ended } = await subscribe(world);
  await world.json(`${subscriptionsPath}/${ended}`, { method: "DELETE" });
  const { value } = await world.deps.kv.get(subscriptionKey(world.projectId, ended));
  const record = fromBytes<Body>(value ?? assert.fail());
  const later: string[] = [];
  for (let n = 0; n < 500; n++) {
    const id = world.deps.id("sub");
    later.push(id);
    await put(world, subscriptionKey(world.projectId, id), toBytes({ ...record, id }));
  }
  const listed = async (query: string): Promise<string[]> => {
    const { body } = await world.json(`${subscriptionsPath}${query}`);
    return body.subscriptions.map(({ id }: Body) => id);
  };
  assert.deepEqual(await listed(""), [first, ...later]);
  assert.deepEqual(await listed("?status=active"), [first]);
  assert.deepEqual(await listed("?status=inactive"), later);
  assert.equal((await read(world, ended)).status, 200);
});
