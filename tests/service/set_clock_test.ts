import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { settingsStaleMs } from "../../src/base/limits.ts";
import { periodAt } from "../../src/base/period.ts";
import { chatBody, chatPath, checkBooks, storedAccount } from "../support/books.ts";
import { ada, forgetWholly, rowsNaming } from "../support/forget.ts";
import { chunk, fedStream, readEvents, usage, usageChunk } from "../support/upstream.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

// The machine's clock is set, by its owner or by the network: nothing permanent may last as long as
// the clock was wrong.
await loadTokenizer();

const dayMs = 24 * 60 * 60 * 1000;

/** A response of ada's that has run for five seconds. */
async function startStream(world: World) {
  await world.deposit("ada", "1");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const events = readEvents(response);
  stream.send(chunk({ content: "one" }));
  await world.clock.advance(5_000);
  return { stream, events };
}

Deno.test("set clock: a key that was revoked elsewhere is refused within a second", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const { body: { key, apiKey } } = await operate(world, "/keys", { body: {} });
  const path = "/v1/user/balance?user=ada";
  const status = async () => (await other.json(path, { key: apiKey })).status;
  assert.equal(await status(), 200);
  world.clock.set(-dayMs);
  await operate(world, `/keys/${key.id}`, { method: "DELETE" });
  await world.clock.advance(settingsStaleMs);
  assert.equal(await status(), 401);
});

for (const byMs of [-dayMs, -60_000, 20_000]) {
  Deno.test(`set clock: a response during which it is set by ${byMs} ms is charged exactly`, async () => {
    using world = await createWorld();
    const { stream, events } = await startStream(world);
    world.clock.set(byMs);
    for (let tens = 0; tens < 12; tens++) {
      stream.send(chunk({ content: `${tens} ` }));
      await world.clock.advance(10_000);
      await world.app.sweep();
    }
    const [hold] = (await storedAccount(world, "ada")).holds;
    const leftMs = (hold?.expiresAt ?? 0) - world.clock.now();
    assert.ok(leftMs > 20_000 && leftMs <= 90_000, `held for ${leftMs} ms more`);
    stream.send(usageChunk(usage(8, 60)));
    stream.send("[DONE]");
    stream.end();
    assert.equal((await events).at(-1), "[DONE]");
    assert.equal((await world.balance("ada")).balance, "0.999872");
    await checkBooks(world, "ada");
  });
}

Deno.test("set clock: a call whose hold has expired by the new time is cut soon, as after a long sleep", async () => {
  using world = await createWorld();
  const { events } = await startStream(world);
  world.clock.set(600_000);
  await world.clock.advance(5_000);
  const { error } = Object((await events).at(-1));
  assert.equal(error.code, "hold_lost");
  assert.equal((await world.balance("ada")).held, "0");
  await checkBooks(world, "ada");
});

Deno.test("set clock: a key at its rate waits no longer than its minute", async () => {
  const limits = { key: { requestsPerMinute: 2 } };
  using world = await createWorld({ project: { limits } });
  await world.deposit("ada", "1");
  const status = async () => (await world.json(chatPath, { body: chatBody("ada") })).status;
  assert.deepEqual([await status(), await status(), await status()], [200, 200, 429]);
  world.clock.set(-dayMs);
  assert.equal(await status(), 429);
  await world.clock.advance(60_000);
  assert.equal(await status(), 200);
});

Deno.test("set clock: a receiver that failed is not paused until the old time returns", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  for (let n = 0; n < 12; n++) await world.deposit("ada", "1");
  await deliver(world);
  const failing = world.subscriber.received.length;
  world.subscriber.reply(() => ({ status: 200 }));
  world.clock.set(-dayMs);
  await world.deposit("bob", "1");
  for (let n = 0; n < 3; n++) {
    await world.clock.advance(15_000);
    await deliver(world);
  }
  const told = world.subscriber.received.slice(failing).map(({ body }) => body.event.data);
  assert.deepEqual(told.map(({ externalUserId }) => externalUserId), ["bob"]);
});

Deno.test("set clock: no attempt takes less than no time", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(async () => {
    world.clock.set(-dayMs);
    await world.clock.sleep(0);
    return { status: 200 };
  });
  await world.deposit("bob", "1");
  await deliver(world);
  assert.deepEqual((await logs(world)).map(({ responseLatencyMs }) => responseLatencyMs), [0]);
});

Deno.test("set clock: an erased user is removed from events with ids ahead of time too", async () => {
  using world = await createWorld();
  await subscribe(world);
  await world.deposit(ada, "1");
  await deliver(world);
  world.clock.set(-dayMs);
  using after = await createWorld({ shareWith: world });
  assert.equal((await forgetWholly(after, { forfeit: true })).status, "done");
  assert.deepEqual(await rowsNaming(after, ada), []);
});

Deno.test("set clock: a day that has started does not end again, and its cap applies once", async () => {
  using world = await sharedWorld();
  await allow(new Device(world), { cap: "5" });
  await pay(world, { amount: "20" });
  const taken = async (amount: string) => (await charge(world, amount)).success;
  assert.equal(await taken("4"), true);
  world.clock.set(-1_000);
  assert.equal(await taken("4"), false, "by a clock that is behind");
  assert.equal(await taken("1"), true);
  await world.clock.advance(2_000);
  assert.equal(await taken("1"), false);
  await world.clock.advance(dayMs);
  assert.equal(await taken("5"), true, "the next one");
});

Deno.test("set clock: what counts in a day or a month continues in the next one if that has started", () => {
  const now = Date.UTC(2026, 0, 31, 23, 59);
  for (
    const [unit, last, expected] of [
      ["day", "2026-02-01", "2026-02-01"],
      ["day", "2026-01-31", "2026-01-31"],
      ["day", "2026-01-30", "2026-01-31"],
      ["day", "2026-02-02", "2026-01-31"],
      ["day", "", "2026-01-31"],
      ["month", "2026-02", "2026-02"],
      ["month", "2025-12", "2026-01"],
      ["month", "2026-03", "2026-01"],
    ] as const
  ) assert.equal(periodAt(now, unit, last), expected, `${unit} ${last}`);
});

/** What a user was charged on each day that entries name. */
async function chargedByDay(world: World, user = "ada"): Promise<Record<string, number>> {
  const days: Record<string, number> = {};
  for (const { kind, amount, createdAt } of await world.activities(user)) {
    const day = createdAt.slice(0, 10);
    if (kind === "charge") days[day] = (days[day] ?? 0) + Number(amount);
  }
  return days;
}

/** Charges one unit as often as it goes. */
async function spendAll(world: World): Promise<number> {
  let spent = 0;
  while (spent < 100 && (await charge(world, "1")).success) spent++;
  return spent;
}

const jumps = [0, dayMs, 0, -dayMs, 0, 2 * dayMs, dayMs, 0, 40 * dayMs, 0];

for (
  const [what, make] of [
    ["limit of a user", async () => {
      const limits = { user: { spendPerDay: "20" } };
      const world = await createWorld({ project: { limits } });
      await world.deposit("ada", "1000");
      return world;
    }],
    ["allowance of a wallet", async () => {
      const world = await sharedWorld();
      await allow(new Device(world), { cap: "20" });
      await pay(world, { amount: "1000" });
      return world;
    }],
  ] as const
) {
  Deno.test(`set clock: the daily ${what} begins once, however the clock is set in between`, async () => {
    using world = await make();
    // Not at midnight: there a day goes on where it has begun for another process.
    await world.clock.advance(dayMs / 2);
    assert.equal(await spendAll(world), 20);
    let at = 0;
    for (const jump of jumps) {
      world.clock.set(jump - at);
      at = jump;
      await spendAll(world);
    }
    assert.equal(at, 0);
    assert.equal(await spendAll(world), 0);
    for (const [day, spent] of Object.entries(await chargedByDay(world))) {
      assert.ok(spent <= 20, `${spent} on ${day}`);
    }
    await world.clock.advance(3 * dayMs);
    assert.equal(await spendAll(world), 20, "a day that has not been yet");
  });
}

Deno.test("set clock: a monthly limit begins once, and a day has what it had left", async () => {
  const limits = { user: { spendPerDay: "20", spendPerMonth: "30" } };
  using world = await createWorld({ project: { limits } });
  await world.deposit("ada", "1000");
  await world.clock.advance(dayMs / 2);
  for (let n = 0; n < 12; n++) await charge(world, "1");
  const monthMs = 31 * dayMs;
  world.clock.set(monthMs);
  assert.equal(await spendAll(world), 20);
  world.clock.set(-monthMs);
  assert.equal(await spendAll(world), 8, "20 a day");
  await world.clock.advance(dayMs);
  assert.equal(await spendAll(world), 10, "30 a month");
});

Deno.test("set clock: an authorization allows no more after another one by the same person", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device, { cap: "20" });
  await pay(world, { amount: "1000" });
  await world.clock.advance(dayMs / 2);
  assert.equal(await spendAll(world), 20);
  world.clock.set(dayMs);
  assert.equal(await spendAll(world), 20);
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  world.clock.set(-dayMs);
  await allow(device, { cap: "20" });
  assert.equal(await spendAll(world), 0);
});

Deno.test("set clock: links for an authorization work after one that was decided ahead of time", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  world.clock.set(2 * 3_600_000);
  await allow(device, { cap: "5" });
  await pay(world, { amount: "10" });
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  world.clock.set(-2 * 3_600_000);
  await allow(device, { cap: "5" });
  assert.equal((await charge(world, "1")).success, true);
});

Deno.test("set clock: deliveries and retries of a wrong clock are due once it is right", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["balance.deposit.*"] });
  world.clock.set(5 * 3_600_000);
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "1");
  await deliver(world);
  world.clock.set(-5 * 3_600_000);
  world.subscriber.reply(() => ({ status: 200 }));
  await world.app.sweep();
  await deliver(world);
  assert.deepEqual((await logs(world)).map(({ status }) => status), ["success"]);
});

Deno.test("set clock: it is logged by how much a clock was set, once", async () => {
  using world = await createWorld();
  const told = () =>
    world.logged.filter(({ event }) => event === "clock_set").map(({ byMs }) => byMs);
  await world.app.beat();
  world.clock.set(7_200_000);
  await world.app.beat();
  await world.clock.advance(60_000);
  await world.app.beat();
  world.clock.set(-7_200_000);
  await world.app.beat();
  assert.deepEqual(told(), [7_200_000, -7_200_000]);
});
