import assert from "node:assert/strict";
import { forgetWholly, rowsNaming } from "../support/forget.ts";
import {
  allow,
  charge,
  Device,
  linkFor,
  pay,
  sharedWorld,
  tellServer,
} from "../support/wallets.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function eventsOf(world: World): Promise<Body[]> {
  const path = `/v1/admin/projects/${world.projectId}/export?what=events`;
  const text = await (await world.call(path, { key: adminKey })).text();
  return text.trim().split("\n").map((line) => JSON.parse(line));
}

Deno.test("forget: an event keeps its amounts, even if the user is called like one", async () => {
  using world = await createWorld();
  await subscribe(world);
  await world.json("/v1/user/balance/deposit", { body: { user: "5", amount: "5" } });
  await charge(world, "5", { user: "5" });
  await charge(world, "5", { user: "5" });
  await deliver(world);
  const amountsOf = (events: Body[]) =>
    events.map(({ type, data }) => [type, data.amount, data.requestedAmount, data.currency]);
  const before = amountsOf(await eventsOf(world));
  assert.ok(before.some(([, amount]) => amount === "5"));
  const { pseudonym } = await forgetWholly(world, {}, "5");
  const events = await eventsOf(world);
  assert.deepEqual(amountsOf(events), before);
  for (const { subject, data } of events) {
    assert.deepEqual([subject.externalId, data.walletUserId], [pseudonym, pseudonym]);
    assert.notEqual(subject.id, "5");
    assert.ok([undefined, pseudonym].includes(data.externalUserId));
  }
});

for (const user of ["operator", "stripe", "farebox"]) {
  Deno.test(`forget: a user who is called ${user} leaves others' actions unchanged`, async () => {
    const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
    using world = await createWorld({ project: { stripe, trialCredits: "1" } });
    await subscribe(world);
    const metadata = { order: "42" };
    await operate(world, "/users/bob/deposit", { body: { amount: "7", metadata } });
    const session = { id: "cs_1", payment_intent: "pi_1", amount_total: 100, currency: "usd" };
    const whose = { farebox_project: world.projectId, farebox_user: "bob", farebox_units: "100" };
    const object = { ...session, metadata: whose, payment_status: "paid" };
    const told = { id: "evt_1", type: "checkout.session.completed", data: { object } };
    await tellServer(world, told, stripe.webhookSecret, `/v1/stripe/${world.projectId}`);
    await world.deposit(user, "1");
    await deliver(world);
    const ofBob = (events: Body[]) => events.filter(({ subject }) => subject.externalId === "bob");
    const before = ofBob(await eventsOf(world));
    assert.deepEqual(new Set(before.map(({ trigger }) => trigger.actorId)).size, 3);
    const { pseudonym } = await forgetWholly(world, { forfeit: true }, user);
    await deliver(world);
    const after = await eventsOf(world);
    assert.deepEqual(ofBob(after), before);
    const named = after.filter(({ subject }) => subject.externalId === user);
    assert.deepEqual(named, []);
    assert.ok(after.some(({ subject }) => subject.externalId === pseudonym));
  });
}

Deno.test("forget: the events of a wallet's authorization name no one any more", async () => {
  using world = await sharedWorld();
  await subscribe(world);
  const device = new Device(world);
  await new Device(world).post(await linkFor(world, "ada.l"), { decision: "decline" });
  await world.clock.advance(1);
  await allow(device, { user: "ada.l" });
  await pay(world, { user: "ada.l" });
  await charge(world, "20", { user: "ada.l" });
  await world.json("/v1/user/disconnect?user=ada.l", { method: "POST" });
  await deliver(world);
  assert.ok((await rowsNaming(world, "ada.l")).length > 10);
  await forgetWholly(world, {}, "ada.l");
  assert.deepEqual(await rowsNaming(world, "ada.l"), []);
});
