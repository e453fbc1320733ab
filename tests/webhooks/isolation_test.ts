import assert from "node:assert/strict";
import { DeliverySlots } from "../../src/webhooks/delivery/endpoint.ts";
import { Breaker, concurrencyMax } from "../../src/webhooks/delivery/breaker.ts";
import { eventually } from "../support/process.ts";
import { createWorld } from "../support/world.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";

const minute = 60_000;

Deno.test("isolation: an endpoint that hangs uses only its own slots, and the others continue", async () => {
  using world = await createWorld();
  const hanging = await subscribe(world, { url: "https://hanging.example.com/" });
  const healthy = await subscribe(world, { url: "https://healthy.example.com/" });
  world.subscriber.reply(({ url }) => url.includes("hanging") ? new Promise(() => {}) : {});
  for (let n = 0; n < 60; n++) await world.deposit("ada", "1");
  const got = (id: string) =>
    world.subscriber.received.filter(({ body }) => body.delivery.subscriptionId === id).length;
  await world.until(() => got(hanging.id) >= concurrencyMax && got(healthy.id) >= 60);
  assert.deepEqual([got(hanging.id), got(healthy.id)], [concurrencyMax, 60]);
});

Deno.test("isolation: a waiting delivery is sent as soon as a slot is free, oldest first", async () => {
  using world = await createWorld();
  await subscribe(world);
  const gate = Promise.withResolvers<void>();
  let underWay = 0;
  let most = 0;
  world.subscriber.reply(async () => {
    most = Math.max(most, ++underWay);
    await gate.promise;
    await new Promise((resolve) => setTimeout(resolve, 1));
    underWay--;
    return {};
  });
  for (let n = 1; n <= 160; n++) await world.deposit("ada", `${n}`);
  assert.equal(world.subscriber.received.length, concurrencyMax);
  gate.resolve();
  await world.app.dispatcher.idle();
  const amounts = world.subscriber.received.map(({ body }) => Number(body.event.data.amount));
  assert.equal(amounts.length, 160, "without a poll");
  assert.equal(most, concurrencyMax);
  const all = Array.from({ length: 160 }, (_, n) => n + 1);
  assert.deepEqual([...amounts].sort((a, b) => a - b), all);
  for (const [at, amount] of amounts.entries()) {
    assert.ok(Math.abs(at + 1 - amount) <= concurrencyMax, `${amount} as number ${at + 1}`);
  }
});

Deno.test("isolation: a success of a delivery that was running as the breaker opened closes it at once", () => {
  const breaker = new Breaker();
  for (let n = 0; n < 10; n++) breaker.record(false, 0);
  assert.deepEqual([breaker.allowed(1), breaker.openUntil(1)], [0, 30_000]);
  breaker.record(true, 1);
  assert.equal(breaker.openUntil(2), null);
  assert.equal(breaker.allowed(2), 2);
});

Deno.test("isolation: a delivery waiting in the store is sent as soon as a slot is free, too", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 404 }));
  await world.deposit("ada", "1000");
  await deliver(world);
  const [failed] = await logs(world);
  const gate = Promise.withResolvers<void>();
  world.subscriber.reply(async () => {
    await gate.promise;
    return {};
  });
  for (let n = 0; n < concurrencyMax; n++) await world.deposit("ada", "1");
  const { received } = world.subscriber;
  await eventually(() => received.length === 1 + concurrencyMax);
  await operate(world, `/deliveries/${failed?.id}/redeliver`);
  assert.equal(received.length, 1 + concurrencyMax);
  gate.resolve();
  await world.app.dispatcher.idle();
  assert.equal(received.length, 2 + concurrencyMax, "without a poll");
});

Deno.test("isolation: while older ones wait in the store, new ones leave half of the slots to them", () => {
  const slots = new DeliverySlots();
  const endpoint = slots.of("prj_a", "sub_a");
  slots.setBacklog(endpoint, true);
  for (let taken = 0; taken < concurrencyMax / 2; taken++) {
    assert.equal(slots.freeForNew(endpoint, 0), concurrencyMax / 2 - taken);
    slots.take(endpoint);
  }
  assert.ok(slots.freeForNew(endpoint, 0) <= 0);
  assert.equal(slots.free(endpoint, 0), concurrencyMax / 2);
  slots.setBacklog(endpoint, false);
  assert.equal(slots.freeForNew(endpoint, 0), concurrencyMax / 2);
});

Deno.test("isolation: a failing endpoint is paused, which uses up no attempts", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  for (let n = 0; n < 10; n++) await world.deposit("ada", "1");
  await world.app.dispatcher.idle();
  assert.equal(world.subscriber.received.length, 10);
  for (let n = 0; n < 30; n++) await world.deposit("ada", "1");
  await deliver(world);
  assert.equal(world.subscriber.received.length, 10, "the breaker is open");
  const attempts = (await logs(world)).map(({ attempts }) => attempts);
  assert.equal(attempts.filter((count) => count === 0).length, 30);
  await world.clock.advance(30_000);
  await deliver(world);
  assert.equal(world.subscriber.received.length, 11, "one probe");
  world.subscriber.reply(() => ({}));
  for (let round = 0; round < 12; round++) {
    await world.clock.advance(minute);
    await deliver(world);
  }
  const statuses = new Set((await logs(world)).map(({ status }) => status));
  assert.deepEqual(statuses, new Set(["success"]));
});

Deno.test("breaker: opens at ten attempts of which most failed, and starts slowly", () => {
  const breaker = new Breaker();
  let now = 0;
  for (let n = 0; n < 9; n++) breaker.record(false, now);
  assert.equal(breaker.allowed(now), concurrencyMax);
  breaker.record(false, now);
  assert.equal(breaker.allowed(now), 0);
  now = breaker.openUntil(now) ?? assert.fail();
  assert.equal(now, 30_000);
  assert.equal(breaker.allowed(now), 1, "a probe");
  breaker.record(false, now);
  const longer = breaker.openUntil(now) ?? assert.fail();
  assert.equal(longer - now, 60_000, "longer each time");
  now = longer;
  for (const expected of [1, 2, 4, 8, 16]) {
    assert.equal(breaker.allowed(now), expected);
    for (let n = 0; n < expected; n++) breaker.record(true, now);
  }
  for (let n = 0; n < 9; n++) breaker.record(false, now);
  assert.equal(breaker.allowed(now), concurrencyMax, "the past is forgotten");
});

Deno.test("breaker: after its probe has succeeded, a few failures among many do not open it", () => {
  const breaker = new Breaker();
  let now = 0;
  for (let n = 0; n < 10; n++) breaker.record(false, now);
  for (let late = 0; late < 22; late++) breaker.record(false, now);
  now = breaker.openUntil(now) ?? assert.fail();
  breaker.record(true, now);
  for (let n = 0; n < 400; n++) {
    breaker.record(n % 5 !== 0, ++now);
    assert.equal(breaker.openUntil(now), null, `after ${n}`);
  }
  assert.equal(breaker.allowed(now), concurrencyMax);
  for (let n = 0; n < 50; n++) breaker.record(false, now);
  assert.equal(breaker.allowed(now), 0, "and many do");
});

Deno.test("breaker: never more than ten minutes, and stays closed when few of many fail", () => {
  const failing = new Breaker();
  let now = 0;
  for (let n = 0; n < 10; n++) failing.record(false, now);
  for (let n = 0; n < 12; n++) {
    now = failing.openUntil(now) ?? assert.fail();
    failing.record(false, now);
  }
  assert.equal(failing.openUntil(now), now + 10 * minute);
  assert.equal(failing.allowed(now), 0);
  assert.equal(failing.allowed(now - 60 * minute), 1, "a clock that was set back holds nothing up");
  const good = new Breaker();
  for (let n = 0; n < 200; n++) good.record(n % 2 === 0, n);
  assert.equal(good.allowed(200), concurrencyMax);
  const old = new Breaker();
  for (let n = 0; n < 9; n++) old.record(false, 0);
  old.record(false, 6 * minute);
  assert.equal(old.allowed(6 * minute), concurrencyMax, "failures long ago do not count");
});

Deno.test("isolation: a hundred slow subscriptions of one project leave slots for another's", () => {
  const slots = new DeliverySlots();
  for (let n = 0; n < 100; n++) {
    const slow = slots.of("pw_slow", `sub_${n}`);
    while (slots.free(slow, 0) > 0) slots.take(slow);
  }
  const healthy = slots.of("pw_other", "sub_healthy");
  assert.equal(slots.free(healthy, 0), 2);
  slots.take(healthy);
  slots.take(healthy);
  assert.equal(slots.free(healthy, 0), 0);
});

Deno.test("breaker: opens when 7 of the last 10 attempts failed, and not at 6", () => {
  const opensAfter = (outcomes: boolean[]) => {
    const breaker = new Breaker();
    for (const ok of outcomes) breaker.record(ok, 0);
    return breaker.openUntil(0) !== null;
  };
  const outcomes = (successes: number, failures: number) => [
    ...Array(successes).fill(true),
    ...Array(failures).fill(false),
  ];
  assert.equal(opensAfter(outcomes(3, 7)), true);
  assert.equal(opensAfter(outcomes(4, 6)), false);
  // The share counts, not the number: 9 of 13 are less than 7 of 10, 10 of 14 are more.
  assert.equal(opensAfter(outcomes(4, 9)), false);
  assert.equal(opensAfter(outcomes(4, 10)), true);
});
