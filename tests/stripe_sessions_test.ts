import assert from "node:assert/strict";
import { allow, Device, pay, sharedWorld, tellServer } from "./support/wallets.ts";
import { type Body, createWorld } from "./support/world.ts";

// What is told at one address, of sessions and payments that are none of its own.

const secretOf = (name: string) => (
  { secretKey: "sk_test_of_the_owner", webhookSecret: `whsec_${name}` }
);
const told = ({ status, body }: { status: number; body: Body }) => [status, body.outcome];

Deno.test("stripe: an owner's own account books nothing in another owner's project", async () => {
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

Deno.test("stripe: what has no payment is booked, and what is told of none is ignored", async () => {
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

Deno.test("stripe: of two disputes that are both won, all is given back", async () => {
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
