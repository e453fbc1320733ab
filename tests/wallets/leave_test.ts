import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { completion } from "../support/upstream.ts";
import { allow, charge, Device, linkFor, pathOf, pay, sharedWorld } from "../support/wallets.ts";
import { operate } from "../support/webhooks.ts";
import type { World } from "../support/world.ts";

const keyed = { "idempotency-key": "order-1" };

const disconnect = (world: World) =>
  world.json("/v1/user/disconnect?user=ada", { method: "POST", body: {} });

/**
 * Disconnects ada from the wallet that pays for her, and connects her to another person's wallet.
 */
async function handOver(world: World, { cap }: { cap: string }): Promise<void> {
  await disconnect(world);
  await world.clock.advance(1);
  await allow(new Device(world), { cap });
  assert.equal((await world.json("/v1/user/connect?user=ada")).body.connected, true);
}

for (
  const [what, end] of Object.entries({
    "the leave has ended": disconnect,
    "another person pays": (world: World) => handOver(world, { cap: "5" }),
  })
) {
  Deno.test(`wallet: a repeated request gets the first response, also when ${what}`, async () => {
    using world = await sharedWorld();
    await allow(new Device(world));
    await pay(world, { amount: "20" });
    const charge = { body: { user: "ada", amount: "2" }, headers: keyed };
    const first = await world.json("/v1/user/charge", charge);
    const back = { user: "ada", activityId: first.body.activityId, amount: "0.5" };
    const refund = { body: back, headers: keyed };
    const refunded = await world.json("/v1/user/refund", refund);
    const chat = { body: chatBody("ada"), headers: keyed };
    const answered = await world.json(chatPath, chat);
    assert.equal(answered.body.paywall, undefined);
    await end(world);
    for (
      const [path, before, request] of [
        ["/v1/user/charge", first, charge],
        ["/v1/user/refund", refunded, refund],
        [chatPath, answered, chat],
      ] as const
    ) {
      const again = await world.json(path, request);
      assert.deepEqual(again.body, before.body, path);
      assert.equal(again.response.headers.get("idempotent-replayed"), "true", path);
    }
    const other = { ...charge, body: { user: "ada", amount: "3" } };
    assert.equal((await world.json("/v1/user/charge", other)).status, 422);
    assert.equal(world.upstream.calls.length, 1);
  });
}

Deno.test("wallet: what another person paid before can still be refunded, to them", async () => {
  using world = await sharedWorld();
  const [first, second] = [new Device(world), new Device(world)];
  const charged: string[] = [];
  for (const device of [first, second, first]) {
    await disconnect(world);
    await world.clock.advance(1);
    await allow(device, { cap: "5" });
    await pay(world, { amount: "20" });
    const { body } = await world.json("/v1/user/charge", { body: { user: "ada", amount: "2" } });
    charged.push(body.activityId);
  }
  const balances = async () => {
    const pages = [await first.get("/wallet"), await second.get("/wallet")];
    return pages.map(({ html }) => /\$\d+\.\d\d/.exec(html)?.[0]);
  };
  assert.deepEqual(await balances(), ["$36.00", "$18.00"]);
  for (const activityId of charged) {
    const refund = { body: { user: "ada", activityId, amount: "1.5" } };
    assert.equal((await world.json("/v1/user/refund", refund)).status, 200);
    assert.equal((await world.json("/v1/user/refund", refund)).status, 400, "0.5 is left");
  }
  assert.deepEqual(await balances(), ["$39.00", "$19.50"]);
  const { body } = await world.json("/v1/user/connect?user=ada");
  assert.equal(body.connected, true);
  const stranger = { user: "bob", activityId: charged[0] };
  assert.equal((await world.json("/v1/user/refund", { body: stranger })).status, 404);
});

Deno.test("wallet: a day's cap does not restart when its person returns on that day", async () => {
  using world = await sharedWorld();
  const [first, second] = [new Device(world), new Device(world)];
  await allow(first, { cap: "3" });
  await pay(world, { amount: "20" });
  assert.equal((await charge(world, "2")).success, true);
  for (const device of [second, first]) {
    await disconnect(world);
    await world.clock.advance(1);
    await allow(device, { cap: "3" });
  }
  assert.equal((await charge(world, "2")).success, false);
  assert.match((await first.get("/wallet")).html, /\$2\.00 of \$3\.00 today/);
  assert.equal((await charge(world, "1")).success, true);
  await world.clock.advance(24 * 60 * 60 * 1000);
  assert.equal((await charge(world, "3")).success, true);
});

Deno.test("wallet: a refund needs no authorization", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "20" });
  const { body } = await world.json("/v1/user/charge", { body: { user: "ada", amount: "2" } });
  await disconnect(world);
  const refund = { user: "ada", activityId: body.activityId };
  const kinds = async () => (await world.activities("ada")).map(({ kind }) => kind);
  assert.deepEqual(await kinds(), ["charge", "deposit"], "what was booked is still seen");
  const answer = await world.json("/v1/user/refund", { body: refund });
  assert.deepEqual([answer.status, answer.body.balance], [200, "20"]);
  assert.match((await device.get("/wallet")).html, /\$20\.00/);
});

Deno.test("wallet: a call is paid by the wallet that it started with, and counts for no other", async () => {
  using world = await sharedWorld({
    pricing: { models: { "test-model": { input: "1000", output: "10000", maxOutputTokens: 100 } } },
  });
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "20" });
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return completion();
  });
  const running = world.json(chatPath, { body: chatBody("ada"), headers: keyed });
  await world.until(async () => (await world.balance("ada")).held !== "0");
  await handOver(world, { cap: "0.01" });
  const waiting = world.json(chatPath, { body: chatBody("ada"), headers: keyed });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(world.upstream.calls.length, 1, "it is the same question");
  gate.resolve();
  const { body: { usage, choices } } = await running;
  await world.clock.advance(1_000);
  assert.deepEqual((await waiting).body.choices, choices);
  assert.ok(Number(usage.cost_exact) > 0.01, `${usage.cost_exact} is more than the other allows`);
  const left = (20 - Number(usage.cost_exact)).toFixed(2);
  assert.match((await device.get("/wallet")).html, new RegExp(`\\$${left.replace(".", "\\.")}`));
  await pay(world, { amount: "5" });
  const own = await world.json("/v1/user/charge", { body: { user: "ada", amount: "0.01" } });
  assert.equal(own.body.success, true, "all of the other's own cap is left");
  assert.equal(own.body.balance, "4.99");
});

Deno.test("wallet: no project refunds what another one took, even from a user of the same name", async () => {
  using world = await sharedWorld();
  const other = await world.makeProject({ name: "Painter", mode: "shared" });
  const device = new Device(world);
  await allow(device);
  await allow(device, { key: other.apiKey });
  await pay(world, { amount: "20" });
  const { activityId } = await charge(world, "2", { key: other.apiKey });
  const refund = { body: { user: "ada", activityId } };
  assert.equal((await world.json("/v1/user/refund", refund)).status, 404);
  assert.equal((await world.balance("ada")).balance, "18");
  const own = await world.json("/v1/user/refund", { ...refund, key: other.apiKey });
  assert.deepEqual([own.status, own.body.balance], [200, "20"]);
});

Deno.test("wallet: neither a closed app, nor an invalid cap, nor a missing button authorizes anything", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  const link = await linkFor(world);
  const approve = { decision: "approve", cap: "5" };
  for (const cap of ["0", "-1", "1000000.01", "much", ""]) {
    assert.equal((await device.post(link, { ...approve, cap })).status, 400, cap);
  }
  assert.equal((await device.post(link, { ...approve, decision: "maybe" })).status, 400);
  const other = await linkFor(world, "bob");
  assert.equal((await device.post(other, { ...approve, cap: "1000000" })).status, 303);
  await operate(world, "/archive", { body: {} });
  assert.equal((await device.post(link, approve)).status, 403);
  assert.equal((await world.json("/v1/user/connect?user=ada")).body.connected, false);
});

Deno.test("wallet: a top-up page that outlives the authorization shows and records nothing", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const page = pathOf((await world.json("/v1/user/balance/topup?user=ada")).body.url);
  await disconnect(world);
  assert.equal((await device.get(page)).status, 404);
  assert.equal((await device.post(page, { amount: "10", formId: "" })).status, 404);
  assert.equal(world.stripe.sessions.size, 0);
});

Deno.test("wallet: everyone who ever paid can be refunded what they were charged", async () => {
  using world = await sharedWorld();
  const devices = [1, 2, 3].map(() => new Device(world));
  const charged: string[] = [];
  for (const device of devices) {
    await disconnect(world);
    await world.clock.advance(1);
    await allow(device);
    await pay(world, { amount: "20" });
    charged.push((await charge(world, "2")).activityId);
  }
  for (const [at, activityId] of charged.entries()) {
    const refund = { body: { user: "ada", activityId } };
    assert.equal((await world.json("/v1/user/refund", refund)).status, 200);
    assert.match((await devices[at]?.get("/wallet"))?.html ?? "", /\$20\.00/);
  }
});

Deno.test("wallet: an unused key replays nothing where no one pays", async () => {
  using world = await sharedWorld();
  const sent = { body: { user: "ada", amount: "2" }, headers: keyed };
  const { status, body } = await world.json("/v1/user/charge", sent);
  assert.deepEqual([status, body.reason], [200, "authorization_required"]);
});
