import assert from "node:assert/strict";
import { createHmac, timingSafeEqual } from "node:crypto";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { createWorld } from "../support/world.ts";
import { deliver, logs, retry, subscribe, subscriptionsPath } from "../support/webhooks.ts";

Deno.test("delivery: a deposit reaches its subscriber, with the contract's body and headers", async () => {
  using world = await createWorld();
  const { id: subscriptionId } = await subscribe(world, { customHeaders: { "X-Team": "billing" } });
  const { body: deposit } = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "5.00", metadata: { order: "o-1" } },
  });
  await deliver(world);
  const [received] = world.subscriber.received;
  assert.ok(received);
  const { delivery, event } = received.body;
  assert.deepEqual(Object.keys(received.body), ["delivery", "event"]);
  assert.equal(delivery.subscriptionId, subscriptionId);
  assert.equal(delivery.attempts, 1);
  const [key] = (await world.json(`/v1/webhooks/subscriptions`)).body.subscriptions;
  assert.deepEqual(event, {
    id: event.id,
    paywallId: world.projectId,
    ownerUserId: "owner",
    type: "balance.deposit.created",
    version: "1.0",
    status: "pending",
    createdAt: new Date(world.clock.now()).toISOString(),
    trigger: { source: "api", actorType: "paywall-owner", actorId: key.createdBy },
    subject: { type: "balance", id: deposit.activityId, externalId: "ada" },
    data: {
      paywallId: world.projectId,
      ownerUserId: "owner",
      walletUserId: "ada",
      externalUserId: "ada",
      amount: "5",
      balanceVersion: 1,
      currency: "usd",
      activityId: deposit.activityId,
      source: "api",
      reason: "payment",
    },
    metadata: { order: "o-1" },
  });
  assert.equal(received.headers["x-service-event"], "balance.deposit.created@1.0");
  assert.equal(received.headers["x-service-timestamp"], delivery.updatedAt);
  assert.equal(received.headers["webhook-id"], delivery.id);
  assert.equal(received.headers["X-Team"], "billing");
  assert.deepEqual(received.addresses, ["93.184.216.34"]);
});

for (const secret of [undefined, "a-secret-of-my-own", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]) {
  Deno.test(`delivery: independent verifiers accept it (${secret ?? "our own secret"})`, async () => {
    using world = await createWorld();
    await world.clock.advance(Date.now() - world.clock.now());
    const made = await subscribe(world, secret ? { secret } : {});
    await world.deposit("ada", "5");
    await deliver(world);
    const [received] = world.subscriber.received;
    assert.ok(received);
    const { raw, headers, body } = received;
    // The contract's four steps.
    const ours = createHmac("sha256", made.secret).update(raw).digest("hex");
    const given = headers["x-service-signature"] ?? "";
    assert.equal(given.length, ours.length);
    assert.ok(timingSafeEqual(new TextEncoder().encode(given), new TextEncoder().encode(ours)));
    const age = Date.now() - Date.parse(headers["x-service-timestamp"] ?? "");
    assert.ok(Math.abs(age) < 5 * 60_000);
    const format = made.secret.startsWith("whsec_") ? {} : { format: "raw" as const };
    assert.deepEqual(new StandardWebhook(made.secret, format).verify(raw, headers), body);
    new SvixWebhook(made.secret, format).verify(raw, headers);
    assert.throws(() => new SvixWebhook(made.secret, format).verify(`${raw} `, headers));
    const forged = raw.replace('"amount":"5"', '"amount":"6"');
    assert.throws(() => new StandardWebhook(made.secret, format).verify(forged, headers));
  });
}

Deno.test("delivery: an error is retried after 30 s, doubling, eight times, never early", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 500, bodyHead: "oh no" }));
  await world.deposit("ada", "5");
  await deliver(world);
  for (let attempt = 1; attempt < 8; attempt++) {
    const [entry] = await logs(world);
    assert.equal(entry?.attempts, attempt);
    assert.equal(entry?.status, "pending");
    assert.equal(entry?.error, "status 500");
    const base = 30_000 * 2 ** (attempt - 1);
    const wait = Date.parse(entry?.nextRetryAt) - world.clock.now();
    assert.ok(wait >= base * 0.5 && wait <= base * 1.5, `${wait} after attempt ${attempt}`);
    await world.clock.advance(wait - 1);
    await deliver(world);
    assert.equal(world.subscriber.received.length, attempt, "not a millisecond early");
    await world.clock.advance(1);
    await deliver(world);
    assert.equal(world.subscriber.received.length, attempt + 1);
  }
  const [entry] = await logs(world);
  assert.deepEqual(
    [entry?.status, entry?.attempts, entry?.nextRetryAt, entry?.responseCode],
    ["error", 8, null, 500],
  );
  const ids = new Set(world.subscriber.received.map(({ body }) => body.delivery.id));
  assert.equal(ids.size, 1, "one id for all retries");
  const attempts = world.subscriber.received.map(({ body }) => body.delivery.attempts);
  assert.deepEqual(attempts, [1, 2, 3, 4, 5, 6, 7, 8]);
  const frozen = new Set(world.subscriber.received.map(({ body }) => JSON.stringify(body.event)));
  assert.equal(frozen.size, 1);
  await world.clock.advance(24 * 3_600_000);
  await deliver(world);
  assert.equal(world.subscriber.received.length, 8);
});

for (const status of [400, 401, 403, 404, 410, 422]) {
  Deno.test(`delivery: status ${status} ends it at once`, async () => {
    using world = await createWorld();
    await subscribe(world);
    world.subscriber.reply(() => ({ status }));
    await world.deposit("ada", "5");
    await deliver(world);
    const [entry] = await logs(world);
    assert.deepEqual([entry?.status, entry?.attempts, entry?.nextRetryAt], ["error", 1, null]);
    assert.equal(entry?.responseCode, status);
  });
}

for (const status of [301, 307, 402, 409, 429, 500, 503]) {
  Deno.test(`delivery: status ${status} is retried`, async () => {
    using world = await createWorld();
    await subscribe(world);
    world.subscriber.reply(() => ({ status }));
    await world.deposit("ada", "5");
    await deliver(world);
    assert.equal((await logs(world))[0]?.status, "pending");
    world.subscriber.reply(() => ({ status: 204 }));
    await retry(world);
    const [entry] = await logs(world);
    assert.deepEqual([entry?.status, entry?.attempts, entry?.error], ["success", 2, null]);
  });
}

for (
  const [retryAfter, status, seconds] of [
    ["600", 429, 600],
    ["600", 503, 600],
    ["86400", 503, 3600],
    ["1", 429, 0],
    ["600", 500, 0],
    ["soon", 503, 0],
  ] as const
) {
  Deno.test(`delivery: Retry-After ${retryAfter} on ${status} waits ${seconds || "the backoff"}`, async () => {
    using world = await createWorld();
    await subscribe(world);
    world.subscriber.reply(() => ({ status, retryAfter }));
    await world.deposit("ada", "5");
    await deliver(world);
    const [entry] = await logs(world);
    const wait = (Date.parse(entry?.nextRetryAt) - world.clock.now()) / 1000;
    if (seconds > 0) assert.equal(wait, seconds);
    else assert.ok(wait >= 15 && wait <= 45, `${wait}`);
  });
}

Deno.test("delivery: one deadline ends a receiver that hangs, and frees its slot", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => new Promise(() => {}));
  await world.deposit("ada", "5");
  await world.clock.advance(14_999);
  assert.equal(world.subscriber.received[0]?.signal.aborted, false);
  await world.clock.advance(1);
  await world.app.dispatcher.idle();
  const [entry] = await logs(world);
  assert.match(entry?.error, /^timeout: /);
  assert.equal(entry?.responseLatencyMs, 15_000);
});

Deno.test("delivery: health counts failed attempts, and a success clears it", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  const read = async () => (await world.json(`${subscriptionsPath}/${id}`)).body.subscription;
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "5");
  await deliver(world);
  await retry(world);
  assert.deepEqual([(await read()).consecutiveFailures, (await read()).lastDeliveredAt], [2, null]);
  world.subscriber.reply(() => ({}));
  await retry(world);
  const { consecutiveFailures, lastDeliveredAt } = await read();
  assert.equal(consecutiveFailures, 0);
  assert.equal(lastDeliveredAt, new Date(world.clock.now()).toISOString());
});

Deno.test("delivery: pending deliveries of a deactivated subscription end as errors", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "5");
  await deliver(world);
  assert.equal((await world.call(`${subscriptionsPath}/${id}`, { method: "DELETE" })).status, 200);
  await retry(world);
  const [entry] = await logs(world);
  assert.deepEqual([entry?.status, entry?.error], ["error", "subscription inactive"]);
  const { body } = await world.json(`${subscriptionsPath}/${id}`);
  assert.equal(body.subscription.consecutiveFailures, 1, "what was not tried says nothing of it");
  assert.equal(world.subscriber.received.length, 1);
});

Deno.test("delivery: after seven days a pending delivery is given up", async () => {
  using world = await createWorld({ env: { WEBHOOK_MAX_ATTEMPTS: "50" } });
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "5");
  await deliver(world);
  await world.clock.advance(7 * 24 * 3_600_000 + 1);
  await deliver(world);
  const [entry] = await logs(world);
  assert.equal(entry?.status, "error");
  assert.match(entry?.error, /7 days/);
});

Deno.test("delivery: a name whose address becomes private is refused at the attempt, and never reached", async () => {
  using world = await createWorld();
  await subscribe(world);
  for (const addresses of [["10.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"]]) {
    world.subscriber.names.set("hooks.example.com", addresses);
    await world.deposit("ada", "5");
    await deliver(world);
    const [entry] = await logs(world);
    assert.match(entry?.error, /^blocked_address/);
    assert.doesNotMatch(entry?.error, /\d+\.\d+/, "no address is told");
  }
  world.subscriber.names.set("hooks.example.com", []);
  await world.deposit("ada", "5");
  await deliver(world);
  assert.match((await logs(world))[0]?.error, /^dns_error/);
  assert.equal(world.subscriber.received.length, 0);
});

Deno.test("delivery: a failed call reports why, and leaves no deadline behind", async () => {
  using world = await createWorld();
  await subscribe(world);
  const waiting = world.clock.waiting;
  world.subscriber.reply(() => Promise.reject(new Error("connect ECONNREFUSED 93.184.216.34")));
  await world.deposit("ada", "5");
  await deliver(world);
  const [entry] = await logs(world);
  assert.equal(entry?.error, "connection_refused: nothing is listening there");
  assert.equal(world.clock.waiting, waiting);
});
