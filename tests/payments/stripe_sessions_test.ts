import assert from "node:assert/strict";
import { readStripeEvent } from "../../src/payments/stripe_events.ts";
import { allow, Device, pay, sharedWorld, tellServer } from "../support/wallets.ts";
import { type Body, createWorld, type World } from "../support/world.ts";
import Stripe from "stripe";
import { forgetWholly } from "../support/forget.ts";

// Responses of one project's path about another project's sessions and payments.

const secretOf = (name: string) => (
  { secretKey: "sk_test_of_the_owner", webhookSecret: `whsec_${name}` }
);
const told = ({ status, body }: { status: number; body: Body }) => [status, body.outcome];

Deno.test("stripe: an owner's own account records nothing in another owner's project", async () => {
  using world = await createWorld({ project: { stripe: secretOf("one") } });
  const other = await world.makeProject({ stripe: secretOf("other") });
  const { event } = await pay(world, { amount: "10" });
  const tell = (projectId: string, name: string) =>
    tellServer(world, event, `whsec_${name}`, `/v1/stripe/${projectId}`);
  assert.deepEqual(told(await tell(other.projectId, "other")), [200, "ignored"]);
  assert.equal((await world.balance("ada")).balance, "0");
  assert.deepEqual(told(await tell(world.projectId, "one")), [200, "booked"]);
});

Deno.test("stripe: a session that names no user of ours is ignored", async () => {
  using world = await createWorld({ project: { stripe: secretOf("one") } });
  const { event, session } = await pay(world, { amount: "10" });
  const { farebox_user: _, ...metadata } = session.metadata;
  const object = { ...session, metadata, payment_status: "paid" };
  const path = `/v1/stripe/${world.projectId}`;
  const answer = await tellServer(world, { ...event, data: { object } }, "whsec_one", path);
  assert.deepEqual(told(answer), [200, "ignored"]);
});

Deno.test("stripe: a session without the wallet that it pays into is ignored", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  const { event, session } = await pay(world, { amount: "10" });
  const { farebox_connection: _, ...nameless } = session.metadata;
  const { farebox_person: __, ...nobodys } = nameless;
  for (const metadata of [nameless, nobodys]) {
    const object = { ...session, id: "cs_other", metadata, payment_status: "paid" };
    assert.deepEqual(told(await tellServer(world, { ...event, data: { object } })), [
      200,
      "ignored",
    ]);
  }
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("stripe: a bank transfer is recorded when it arrives, days later, once", async () => {
  using world = await createWorld({ project: { stripe: secretOf("one") } });
  const { event, session } = await pay(world, { amount: "10", secret: "whsec_other" });
  const tell = (type: string, payment_status: string) => {
    const object = { ...session, payment_status };
    const path = `/v1/stripe/${world.projectId}`;
    return tellServer(world, { ...event, type, data: { object } }, "whsec_one", path);
  };
  const outcomes: unknown[] = [];
  for (
    const [type, status] of [
      ["completed", "unpaid"],
      ["async_payment_failed", "unpaid"],
      ["async_payment_succeeded", "paid"],
      ["async_payment_succeeded", "paid"],
      ["completed", "paid"],
    ] as const
  ) outcomes.push((await tell(`checkout.session.${type}`, status)).body.outcome);
  assert.deepEqual(outcomes, ["ignored", "ignored", "booked", "booked", "booked"]);
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("stripe: a session without a payment is recorded, and changes without one are ignored", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  const { event, session } = await pay(world, { amount: "10" });
  const object = { ...session, id: "cs_later", payment_intent: null, payment_status: "paid" };
  const later = { ...event, id: "evt_later", data: { object } };
  assert.deepEqual(told(await tellServer(world, later)), [200, "booked"]);
  assert.equal((await world.balance("ada")).balance, "20");
  const none = {
    id: "re_1",
    payment_intent: null,
    status: "failed",
    amount: 5,
    amount_refunded: 5,
  };
  for (const type of ["charge.refunded", "refund.failed", "charge.dispute.created"]) {
    const about = { ...event, id: `evt_${type}`, type, data: { object: { ...none, id: "dp_1" } } };
    assert.deepEqual(told(await tellServer(world, about)), [200, "ignored"], type);
  }
});

Deno.test("stripe: of two disputes that are both won, everything is reinstated", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  const { event, session } = await pay(world, { amount: "10" });
  const { payment_intent } = session;
  const balances: string[] = [];
  for (const [type, status] of [["created", "needs_response"], ["closed", "won"]]) {
    for (const [id, amount] of [["dp_1", 400], ["dp_2", 600]]) {
      const object = { id, amount, status, payment_intent };
      const about = { ...event, id: `evt_${type}_${id}`, type: `charge.dispute.${type}` };
      await tellServer(world, { ...about, data: { object } });
      balances.push((await world.balance("ada")).balance);
    }
  }
  assert.deepEqual(balances, ["6", "0", "4", "10"]);
});

Deno.test("stripe: of the events of a payment, only those that move its money count", () => {
  const read = (type: string, object: Body) => {
    const data = { object: { id: "x_1", payment_intent: "pi_1", ...object } };
    const event = { id: "evt_1", type, data };
    const change = readStripeEvent(event);
    return change && "units" in change ? [change.kind, change.units] : change?.kind ?? null;
  };
  assert.deepEqual(read("charge.refunded", { amount_refunded: 5 }), ["refund total", 5]);
  assert.equal(read("charge.refunded", { amount_refunded: 0 }), null);
  assert.deepEqual(read("refund.created", { amount: 5, status: "pending" }), ["refund", 5]);
  for (const type of ["refund.failed", "refund.updated", "charge.refund.updated"]) {
    const failed = read(type, { amount: 5, status: "failed" });
    assert.deepEqual(failed, ["failed refund", 5], type);
    const made = read(type, { amount: 5, status: "succeeded" });
    assert.deepEqual(made, [type === "refund.failed" ? "failed refund" : "refund", 5], type);
  }
  const dispute = (type: string, status: string, amount = 5) =>
    read(`charge.dispute.${type}`, { status, amount });
  for (const status of ["needs_response", "under_review", "won", "lost"]) {
    assert.deepEqual(dispute("created", status), ["reversal", 5], status);
    assert.equal(dispute("created", `warning_${status}`), null, "an inquiry takes nothing");
    assert.equal(dispute("created", status, 0), null, "it is about nothing");
    assert.equal(dispute("closed", status), status === "won" ? "reinstatement" : null, status);
  }
  for (const object of [{ amount: -5 }, { amount: 0.5 }, {}]) {
    for (const type of ["refund.updated", "charge.dispute.closed"]) {
      assert.throws(() => read(type, { status: "failed", ...object }), { status: 400 });
    }
  }
});

const ownerKeys = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };

async function tellStripe(world: World, event: unknown) {
  const payload = JSON.stringify(event);
  const header = await new Stripe("sk_test").webhooks.generateTestHeaderStringAsync({
    payload,
    secret: ownerKeys.webhookSecret,
    timestamp: Math.floor(world.clock.now() / 1000),
    cryptoProvider: Stripe.createSubtleCryptoProvider(),
  });
  const headers = { "stripe-signature": header, "content-length": String(payload.length) };
  return await world.json(`/v1/stripe/${world.projectId}`, { key: null, raw: payload, headers });
}

for (const user of ["ada", "7", "test"]) {
  Deno.test(`stripe: a payment is not recorded again after its user '${user}' is erased`, async () => {
    using world = await createWorld({ project: { stripe: ownerKeys } });
    const object = {
      id: "cs_test_a1b7C9d2e3F4",
      object: "checkout.session",
      payment_status: "paid",
      amount_total: 1000,
      currency: "usd",
      payment_intent: "pi_1",
      metadata: {
        farebox_project: world.projectId,
        farebox_user: user,
        farebox_units: "1000",
      },
    };
    const type = "checkout.session.completed";
    const event = { id: "evt_1", object: "event", type, data: { object } };
    await tellStripe(world, event);
    assert.equal((await world.balance(user)).balance, "10");
    await forgetWholly(world, { forfeit: true }, user);
    await tellStripe(world, event);
    assert.equal((await world.balance(user)).balance, "0");
  });
}
