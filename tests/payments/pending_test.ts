import assert from "node:assert/strict";
import { allPendingPaymentsPrefix } from "../../src/store/keys.ts";
import { textOf } from "../support/console.ts";
import { forgetWholly, rowsNaming } from "../support/forget.ts";
import { type PaidWorld, paidWorld } from "../support/payments.ts";
import { keysUnder } from "../support/verify.ts";
import { allow, Device, openSession, pathOf, sharedWorld, tellServer } from "../support/wallets.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import type { World } from "../support/world.ts";

async function page(world: World, device = new Device(world)): Promise<string> {
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  return textOf((await device.get(pathOf(body.url))).html);
}

const unpaid = { payment_status: "unpaid" };
const failed = "checkout.session.async_payment_failed";
const succeeded = "checkout.session.async_payment_succeeded";

const types = ({ subscriber }: World) => subscriber.types().filter((type) => /^pay/.test(type));

async function watched(): Promise<PaidWorld> {
  const paid = await paidWorld();
  await subscribe(paid.world, { events: ["payment.*"] });
  return paid;
}

Deno.test("pending: a bank payment is shown as on its way until it arrives, with one event", async () => {
  const { world, session, tell, tellEvent } = await watched();
  using _ = world;
  assert.doesNotMatch(await page(world), /on its way/);
  for (let time = 0; time < 2; time++) assert.equal((await tell(unpaid)).status, 200);
  assert.match(await page(world), /\$10\.00 is on its way/);
  assert.equal((await world.balance("ada")).balance, "0");
  await deliver(world);
  assert.deepEqual(types(world), ["payment.pending"]);
  const { body } = world.subscriber.received.at(-1) ?? assert.fail();
  assert.partialDeepStrictEqual(body.event.data, {
    checkoutSessionId: session.id,
    amount: "10",
    currency: "usd",
    walletUserId: "ada",
  });
  assert.equal((await tellEvent(succeeded, session)).body.outcome, "booked");
  assert.doesNotMatch(await page(world), /on its way/);
  assert.equal((await world.balance("ada")).balance, "10");
  await tell(unpaid);
  assert.doesNotMatch(await page(world), /on its way/, "a late report");
});

Deno.test("pending: a bank payment that fails is no longer on its way, in any order of the reports", async () => {
  for (const isLate of [false, true]) {
    const { world, session, tell, tellEvent } = await watched();
    using _ = world;
    const fail = () => tellEvent(failed, { ...session, ...unpaid });
    if (isLate) await fail();
    await tell(unpaid);
    if (!isLate) await fail();
    await fail();
    assert.doesNotMatch(await page(world), /on its way/);
    await deliver(world);
    assert.deepEqual(types(world).at(-1), "payment.failed");
    assert.equal(types(world).length, isLate ? 1 : 2);
    assert.equal((await world.balance("ada")).balance, "0");
  }
});

Deno.test("pending: a payment of which nothing is heard is forgotten, and so is an erased user's", async () => {
  const { world, tell } = await paidWorld();
  using _ = world;
  await world.deposit("ada", "1");
  await tell(unpaid);
  await tell({ ...unpaid, id: "cs_2" });
  assert.equal((await keysUnder(world, allPendingPaymentsPrefix)).length, 2);
  await forgetWholly(world, { forfeit: true }, "ada");
  assert.deepEqual(await rowsNaming(world, '"ada"'), []);
  assert.equal((await keysUnder(world, allPendingPaymentsPrefix)).length, 0);
  await tell({ ...unpaid, id: "cs_3" });
  await world.clock.advance(31 * 24 * 60 * 60 * 1000);
  await world.app.sweep();
  assert.equal((await keysUnder(world, allPendingPaymentsPrefix)).length, 0);
});

Deno.test("pending: what is on its way into a wallet is only shown to its owner", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const session = await openSession(world);
  const event = { id: "evt_1", type: "checkout.session.completed", data: { object: session } };
  assert.equal((await tellServer(world, event)).status, 200);
  assert.match(await page(world, device), /\$10\.00 is on its way/);
  assert.doesNotMatch(await page(world), /on its way/);
});
