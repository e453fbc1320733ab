import assert from "node:assert/strict";
import { catalogue, type EventType, eventTypes } from "../../src/events/catalogue.ts";
import { chat, chatStream, openReader } from "../support/chat.ts";
import { createScriptedStore } from "../support/store.ts";
import { chunk, completion, fedStream, helloStream } from "../support/upstream.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";
import { deliver, subscribe, subscriptionsPath } from "../support/webhooks.ts";

/** The events that one action caused, by type; each is checked against its schema. */
async function eventsOf(world: World, cause: () => Promise<unknown>) {
  await deliver(world);
  const before = world.subscriber.received.length;
  await cause();
  await deliver(world);
  const events = world.subscriber.received.slice(before).map(({ body }) => body.event);
  for (const { type, data, paywallId, ownerUserId, trigger, subject } of events) {
    assert.ok(eventTypes.includes(type), type);
    const { source, actorType, actorId } = trigger;
    const texts = [source, actorType, actorId, subject.type, subject.id, subject.externalId];
    for (const text of texts) assert.match(text, /./, type);
    const { paywallId: named, ownerUserId: owner, ...own } = data;
    assert.deepEqual([named, owner], [paywallId, ownerUserId]);
    assert.deepEqual(catalogue[type as EventType].strict().parse(own), own);
  }
  return events;
}

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type).sort();

async function listeningWorld(options = {}): Promise<World> {
  const world = await createWorld(options);
  await subscribe(world);
  return world;
}

const charge = (world: World, amount: string) =>
  world.json("/v1/user/charge", { body: { user: "ada", amount, metadata: { job: "j-1" } } });

Deno.test("events: money operations emit them, with the operation's metadata", async () => {
  using world = await listeningWorld();
  assert.deepEqual(typesOf(await eventsOf(world, () => world.deposit("ada", "5"))), [
    "balance.deposit.created",
  ]);
  const taken = await eventsOf(world, () => charge(world, "2"));
  assert.deepEqual(typesOf(taken), ["balance.charge.completed", "balance.charge.created"]);
  for (const { metadata } of taken) assert.deepEqual(metadata, { job: "j-1" });
  const refused = await eventsOf(world, () => charge(world, "9"));
  assert.deepEqual(typesOf(refused), ["balance.charge.failed", "balance.depleted"]);
  const depleted = refused.find(({ type }) => type === "balance.depleted");
  assert.deepEqual([depleted.data.requestedAmount, depleted.data.availableBalance], ["9", "3"]);
  const { activityId } = taken[0].data;
  const refund = () => world.json("/v1/user/refund", { body: { activityId, amount: "0.5" } });
  const [refunded, ...more] = await eventsOf(world, refund);
  assert.deepEqual([refunded.type, more], ["balance.refund.created", []]);
  assert.deepEqual([refunded.data.amount, refunded.data.refundedActivityId], ["0.5", activityId]);
});

Deno.test("events: a repeated request emits nothing again", async () => {
  using world = await listeningWorld();
  const once = () =>
    world.json("/v1/user/balance/deposit", {
      body: { user: "ada", amount: "5" },
      headers: { "idempotency-key": "k-1" },
    });
  assert.equal((await eventsOf(world, once)).length, 1);
  assert.equal((await eventsOf(world, once)).length, 0);
});

Deno.test("events: a chat starts, is charged, and completes", async () => {
  using world = await listeningWorld();
  await world.deposit("ada", "1");
  const whole = await eventsOf(world, () => chat(world));
  assert.deepEqual(typesOf(whole), [
    "proxy.request.completed",
    "proxy.request.started",
    "usage.charge.created",
  ]);
  const used = whole.find(({ type }) => type === "usage.charge.created");
  assert.deepEqual(
    [used.data.promptTokens, used.data.completionTokens, used.data.cost, used.data.model],
    [10, 5, "0.00002", "test-model"],
  );
  assert.equal(new Set(whole.map(({ data }) => data.requestId).filter(Boolean)).size, 1);
  world.upstream.once(helloStream);
  const streamed = await eventsOf(world, async () => await (await chatStream(world)).text());
  assert.deepEqual(typesOf(streamed), [
    "proxy.request.completed",
    "proxy.request.started",
    "usage.charge.created",
    "usage.charge.deferred",
  ]);
});

Deno.test("events: a chat that fails, is abandoned, or gets the paywall emits that", async () => {
  using world = await listeningWorld();
  const walled = await eventsOf(world, () => chat(world));
  assert.deepEqual(typesOf(walled), ["balance.depleted", "request.blocked"]);
  await world.deposit("ada", "1");
  const failed = await eventsOf(world, async () => {
    world.upstream.once(() => Response.json({ error: { message: "no" } }, { status: 500 }));
    await chat(world);
  });
  assert.deepEqual(typesOf(failed), ["proxy.request.failed", "proxy.request.started"]);
  assert.equal(failed.find(({ type }) => /failed/.test(type)).data.errorCode, "upstream_error");
  const refused = await eventsOf(world, async () => {
    const error = { message: "no", type: "invalid_request_error", param: "tools", code: null };
    world.upstream.once(() => Response.json({ error }, { status: 400 }));
    await chat(world);
  });
  const { errorCode } = refused.find(({ type }) => /failed/.test(type)).data;
  assert.equal(errorCode, "invalid_request_error", "the service itself is not at fault");
  const left = await eventsOf(world, async () => {
    const fed = fedStream();
    world.upstream.once(() => fed.response);
    const reader = openReader(await chatStream(world));
    fed.send(chunk({ content: "Hello there" }));
    await reader.read();
    await reader.leave();
    await world.app.running.idle();
  });
  assert.deepEqual(typesOf(left), [
    "proxy.request.canceled",
    "proxy.request.started",
    "usage.charge.created",
    "usage.charge.deferred",
  ]);
});

Deno.test("events: a call whose process died is reported as failed when its hold expires", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world);
  await world.deposit("ada", "1");
  using survivor = await createWorld({ shareWith: world });
  world.upstream.once(() => new Promise(() => {}));
  chat(world).catch(() => {});
  while (world.upstream.calls.length === 0) await deliver(survivor);
  await deliver(world);
  store.dead = true;
  await world.clock.advance(61_000);
  const ended = await eventsOf(survivor, () => survivor.app.sweep());
  const failed = ended.find(({ type }) => type === "proxy.request.failed");
  assert.equal(failed.data.errorCode, "hold_expired");
});

Deno.test("events: a refusal by a limit is reported as blocked", async () => {
  const project = { limits: { user: { concurrent: null } } };
  using world = await listeningWorld({ project });
  await world.deposit("ada", "1000");
  const release = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await release.promise;
    return completion();
  });
  const running = Array.from({ length: 256 }, () => chat(world));
  await world.until(() => world.upstream.calls.length >= 256);
  const blocked = await eventsOf(world, async () => {
    assert.equal((await chat(world)).status, 429);
  });
  const [event] = blocked.filter(({ type }) => type === "proxy.request.blocked");
  assert.equal(event.data.reason, "concurrency_limit");
  release.resolve();
  await Promise.all(running);
});

Deno.test("events: changes of a project and its keys", async () => {
  using world = await listeningWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  const admin = (method: string, where: string, body?: unknown) =>
    world.json(`${path}${where}`, { method, key: adminKey, body });
  const [updated] = await eventsOf(
    world,
    () => admin("PATCH", "", { name: "New", pricing: { requestFee: "1" } }),
  );
  assert.equal(updated.type, "updated");
  assert.deepEqual(updated.data.changedFields, ["name", "pricing.requestFee"]);
  assert.deepEqual(updated.data.summarySections, ["name", "pricing"]);
  const [rotated] = await eventsOf(world, () => admin("POST", "/keys", {}));
  assert.equal(rotated.type, "secret.rotated");
  assert.equal(rotated.data.secretLastFour.length, 4);
  assert.equal((await eventsOf(world, () => admin("POST", "/archive")))[0].type, "archived");
  assert.deepEqual(await eventsOf(world, () => admin("POST", "/archive")), []);
});

Deno.test("events: a Stripe account is connected, changes its webhook's secret, and is removed", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["integration.*"] });
  const path = `/v1/admin/projects/${world.projectId}`;
  const keys = { secretKey: "sk_test_123", webhookSecret: "whsec_first" };
  const changes = [
    keys,
    keys,
    { ...keys, secretKey: "sk_test_456" },
    { ...keys, webhookSecret: "whsec_second" },
    null,
    null,
  ];
  const told = await eventsOf(world, async () => {
    for (const stripe of changes) {
      const options = { method: "PATCH", key: adminKey, body: { stripe } };
      assert.equal((await world.json(path, options)).status, 200);
    }
  });
  assert.deepEqual(typesOf(told), [
    "integration.connected",
    "integration.disconnected",
    "integration.stripe.webhook.rotated",
  ]);
  const rotated = told.find(({ type }) => type === "integration.stripe.webhook.rotated");
  assert.equal(rotated?.data.secretSuffix, "cond");
  assert.equal(rotated?.data.url, `https://farebox.test/v1/stripe/${world.projectId}`);
});

Deno.test("events: families and names select, and billingEvents disables billing events", async () => {
  using world = await createWorld();
  const one = await subscribe(world, { events: ["balance.deposit.created"] });
  const family = await subscribe(world, { events: ["balance.charge.*", "proxy.*"] });
  await world.deposit("ada", "5");
  await charge(world, "1");
  await chat(world);
  await deliver(world);
  const got = (id: string) =>
    world.subscriber.received.filter(({ body }) => body.delivery.subscriptionId === id)
      .map(({ body }) => body.event.type).sort();
  assert.deepEqual(got(one.id), ["balance.deposit.created"]);
  assert.deepEqual(got(family.id), [
    "balance.charge.completed",
    "balance.charge.created",
    "proxy.request.completed",
    "proxy.request.started",
  ]);
  const body = { billingEvents: false };
  const path = `/v1/admin/projects/${world.projectId}`;
  await world.json(path, { method: "PATCH", key: adminKey, body });
  const quiet = await eventsOf(world, async () => {
    await charge(world, "1");
    await chat(world);
  });
  assert.deepEqual(typesOf(quiet), ["proxy.request.completed", "proxy.request.started"]);
});

Deno.test("events: an event without subscribers costs no write", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world, { events: ["archived"] });
  store.writes.length = 0;
  await world.deposit("ada", "1");
  await charge(world, "9");
  await chat(world);
  const written = store.writes.flatMap(({ sets }) => sets.map(({ key }) => key[0]));
  assert.ok(written.includes("account"));
  assert.ok(!written.includes("outbox"));
});

Deno.test("events: a new subscription misses nothing after its response, in any process", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  using other = await createWorld({ shareWith: world });
  // The other process still has the project's old settings.
  for (const each of [world, other]) await chat(each);
  for (let n = 0; n < 5; n++) {
    const { id } = await subscribe(world, { events: ["balance.*", "request.blocked"] });
    await charge(other, "0.01");
    await charge(other, "500");
    await deliver(world);
    await deliver(other);
    const got = world.subscriber.received
      .filter(({ body }) => body.delivery.subscriptionId === id)
      .map(({ body }) => body.event.type).sort();
    assert.deepEqual(got, [
      "balance.charge.completed",
      "balance.charge.created",
      "balance.charge.failed",
      "balance.depleted",
    ]);
    await world.call(`${subscriptionsPath}/${id}`, { method: "DELETE" });
  }
});

Deno.test("events: metadata of 16 KiB is delivered whole", async () => {
  using world = await listeningWorld();
  const metadata = { text: "\u20ac".repeat(5_400) };
  const [event] = await eventsOf(
    world,
    () => world.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "1", metadata } }),
  );
  assert.deepEqual(event.metadata, metadata);
});
