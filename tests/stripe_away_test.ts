import assert from "node:assert/strict";
import type { Key } from "../src/store/kv.ts";
import { createScriptedStore } from "./support/store.ts";
import { allow, Device, env, pay, tellServer } from "./support/wallets.ts";
import { operate } from "./support/webhooks.ts";
import { type Body, createWorld } from "./support/world.ts";

/** A wallet with ten dollars in it, of a service whose store can refuse some reads. */
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
  return { world, event, session, refuse, heal: () => void (store.get = null) };
}

const told = ({ status, body }: { status: number; body: Body }) => [status, body.outcome];

Deno.test("stripe: a payment that is told while settings cannot be read is not taken for told", async () => {
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

Deno.test("stripe: what is paid back while the books cannot be read is not taken for told", async () => {
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

Deno.test("stripe: a server without an account there is told nothing", async () => {
  using world = await createWorld();
  const event = { id: "evt_1", object: "event", type: "checkout.session.completed", data: {} };
  assert.equal((await tellServer(world, event)).status, 404);
});

Deno.test("stripe: what was paid is booked in an archived project too, without trial credits", async () => {
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
