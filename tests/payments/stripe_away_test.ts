import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { allStripeReversalsPrefix, stripeReversalKey } from "../../src/store/keys.ts";
import type { Key } from "../../src/store/kv.ts";
import { createScriptedStore } from "../support/store.ts";
import { keysUnder, put } from "../support/verify.ts";
import { allow, Device, env, pay, tellServer } from "../support/wallets.ts";
import { operate } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

/** A wallet with ten dollars in it, of a service whose store can reject some reads. */
async function fragileWallet() {
  const store = createScriptedStore();
  const world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  await allow(new Device(world));
  const { event, session } = await pay(world, { amount: "10" });
  const refuse = (room: string) => {
    store.get = async (key: Key, real) => {
      if (key[0] === room) throw new TypeError("connection refused");
      return await real(key);
    };
  };
  /** Once, after a read that finds nothing and before its response. */
  const between = (room: string, work: () => Promise<void>) => {
    store.get = async (key: Key, real) => {
      const row = await real(key);
      if (key[0] !== room || row.value) return row;
      store.get = null;
      await work();
      return row;
    };
  };
  return { world, event, session, refuse, between, heal: () => void (store.get = null) };
}

const told = ({ status, body }: { status: number; body: Body }) => [status, body.outcome];

Deno.test("stripe: a payment reported while settings cannot be read is not acknowledged", async () => {
  const { world, event, session, refuse, heal } = await fragileWallet();
  using _ = world;
  const object = { ...session, id: "cs_later", payment_intent: "pi_later", payment_status: "paid" };
  const later = { ...event, id: "evt_later", data: { object } };
  await world.clock.advance(60_000);
  refuse("project");
  assert.deepEqual(told(await tellServer(world, later)), [503, undefined]);
  heal();
  assert.deepEqual(told(await tellServer(world, later)), [200, "booked"]);
  assert.equal((await world.balance("ada")).balance, "20");
});

Deno.test("stripe: a refund reported while the ledger cannot be read is not acknowledged", async () => {
  const { world, event, session, refuse, heal } = await fragileWallet();
  using _ = world;
  const object = { payment_intent: session.payment_intent, amount_refunded: 400 };
  const refund = { ...event, id: "evt_refund", type: "charge.refunded", data: { object } };
  refuse("refunded");
  assert.deepEqual(told(await tellServer(world, refund)), [503, undefined]);
  heal();
  assert.deepEqual(told(await tellServer(world, refund)), [200, "debited"]);
  assert.equal((await world.balance("ada")).balance, "6");
});

Deno.test("stripe: a server without a Stripe account accepts no events", async () => {
  using world = await createWorld();
  const event = { id: "evt_1", object: "event", type: "checkout.session.completed", data: {} };
  assert.equal((await tellServer(world, event)).status, 404);
});

Deno.test("stripe: a payment is recorded in an archived project too, without trial credits", async () => {
  const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
  using world = await createWorld({ project: { stripe, trialCredits: "1" } });
  const { event, answer } = await pay(world, { amount: "10" });
  assert.equal(answer.status, 404, "that is not where this project is told");
  await operate(world, "/archive");
  const path = `/v1/stripe/${world.projectId}`;
  const booked = await tellServer(world, event, stripe.webhookSecret, path);
  assert.deepEqual(told(booked), [200, "booked"]);
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("stripe: a reinstatement reported while the ledger cannot be read is not acknowledged", async () => {
  const { world, event, session, refuse, heal } = await fragileWallet();
  using _ = world;
  const dispute = (type: string, status: string) => ({
    ...event,
    id: `evt_${type}`,
    type: `charge.dispute.${type}`,
    data: { object: { id: "dp_1", payment_intent: session.payment_intent, amount: 1000, status } },
  });
  await tellServer(world, dispute("created", "needs_response"));
  assert.equal((await world.balance("ada")).balance, "0");
  const won = dispute("closed", "won");
  refuse("refunded");
  assert.deepEqual(told(await tellServer(world, won)), [503, undefined]);
  heal();
  assert.deepEqual(told(await tellServer(world, won)), [200, "credited"]);
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("stripe: a refund reported during its payment is taken back, and not stored forever", async () => {
  const { world, event, session, between } = await fragileWallet();
  using _ = world;
  using other = await createWorld({ env, shareWith: world });
  const object = { ...session, id: "cs_later", payment_intent: "pi_later", payment_status: "paid" };
  between("stripe_payment", async () => {
    const later = { ...event, id: "evt_later", data: { object } };
    assert.deepEqual(told(await tellServer(other, later)), [200, "booked"]);
  });
  const reversal = { payment_intent: "pi_later", amount_refunded: 400 };
  const refund = {
    ...event,
    id: "evt_refund",
    type: "charge.refunded",
    data: { object: reversal },
  };
  assert.deepEqual(told(await tellServer(world, refund)), [200, "debited"]);
  assert.equal((await world.balance("ada")).balance, "16");
});

Deno.test("stripe: of two events at the same time, neither is lost", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  await allow(new Device(world));
  const { event, session: { payment_intent } } = await pay(world, { amount: "10" });
  using other = await createWorld({ env, shareWith: world, seed: 2 });
  const tell = (by: World, type: string, object: Body) => {
    const about = { ...event, id: `evt_${type}`, type };
    return tellServer(by, { ...about, data: { object: { payment_intent, ...object } } });
  };
  store.atomic = async (write, real) => {
    store.atomic = null;
    await tell(other, "charge.refunded", { amount_refunded: 400 });
    return await real(write);
  };
  const failed = await tell(world, "refund.failed", { id: "re_1", status: "failed", amount: 400 });
  assert.deepEqual([told(failed), store.atomic], [[200, "credited"], null]);
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("stripe: if the project has refunded a part of a payment, the rest is taken", async () => {
  const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
  using world = await createWorld({ project: { stripe } });
  const { event, session } = await pay(world, { amount: "10" });
  const tell = (event: Body) =>
    tellServer(world, event, stripe.webhookSecret, `/v1/stripe/${world.projectId}`);
  await tell(event);
  const [deposit] = await world.activities("ada");
  const own = { user: "ada", activityId: deposit?.id, amount: "4" };
  assert.equal((await world.json("/v1/user/refund", { body: own })).status, 200);
  const object = { payment_intent: session.payment_intent, amount_refunded: 1000 };
  const refund = { ...event, id: "evt_refund", type: "charge.refunded", data: { object } };
  assert.deepEqual(told(await tell(refund)), [200, "debited"]);
  assert.equal((await world.balance("ada")).balance, "0");
  const [entry] = await world.activities("ada");
  assert.deepEqual([entry?.amount, entry?.shortfall], ["6", "0"]);
  const again = { ...refund, id: "evt_more" };
  assert.deepEqual(told(await tell(again)), [200, "debited"], "the same refund");
  const lost = { id: "dp_1", payment_intent: session.payment_intent, amount: 1000 };
  const more = {
    ...refund,
    id: "evt_lost",
    type: "charge.dispute.created",
    data: { object: lost },
  };
  assert.deepEqual(told(await tell(more)), [200, "ignored"], "nothing is left");
});

Deno.test("stripe: of very many changes that wait for a payment, each one that is too old is dropped", async () => {
  using world = await createWorld();
  const keep = (n: number, keptAt: number) =>
    put(world, stripeReversalKey("instance", `pi_${1_000 + n}`, "evt_1"), toBytes({ keptAt }));
  for (let n = 0; n < 250; n++) await keep(n, n < 120 ? world.clock.now() : 0);
  await world.app.sweep();
  assert.equal((await keysUnder(world, allStripeReversalsPrefix)).length, 120);
});
