import assert from "node:assert/strict";
import { idempotencyPrefix } from "../../src/store/keys.ts";
import { forgetWholly } from "../support/forget.ts";
import { verify } from "../support/verify.ts";
import { pay, tellServer } from "../support/wallets.ts";
import { type Body, createWorld } from "../support/world.ts";

const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };

/** A project with its own Stripe account, and a paid session that is not reported yet. */
async function paidWorld() {
  const world = await createWorld({ project: { stripe } });
  const { event, session } = await pay(world, { amount: "10" });
  const tell = async (more: Body = {}) =>
    (await tellServer(
      world,
      { ...event, ...more },
      stripe.webhookSecret,
      `/v1/stripe/${world.projectId}`,
    )).body.outcome;
  const change = (id: string, type: string, object: Body) =>
    tell({ id, type, data: { object: { payment_intent: session.payment_intent, ...object } } });
  return { world, session, event, tell, change };
}

const refunded = { amount_refunded: 300 };
const dispute = { id: "dp_1", amount: 1000, status: "needs_response" };

Deno.test("own keys: deposits and refunds by API under Stripe's names do not hide what Stripe reports", async () => {
  const { world, session, event, tell, change } = await paidWorld();
  using _ = world;
  const metadata = { source: "stripe", checkoutSessionId: session.id };
  const small = { user: "ada", amount: "0.000000001" };
  const post = (path: string, key: string, body: Body) =>
    world.json(path, { body, headers: { "idempotency-key": key } });
  const deposit = "/v1/user/balance/deposit";
  assert.equal((await post(deposit, `stripe:${session.id}`, { ...small, metadata })).status, 200);
  assert.equal((await post(deposit, "stripe:evt_won", small)).status, 200);
  assert.equal(await tell(), "booked");
  assert.equal((await world.balance("ada")).balance, "10.000000002");
  const paid = (await world.activities("ada")).find(({ amount }) => amount === "10");
  assert.equal(paid?.idempotencyKey, `stripe:${session.id}`);
  const refund = { ...small, activityId: paid?.id };
  assert.equal((await post("/v1/user/refund", "stripe:evt_back", refund)).status, 200);
  assert.equal(await change("evt_back", "charge.refunded", refunded), "debited");
  assert.equal((await world.balance("ada")).balance, "7.000000001");
  await change("evt_lost", "charge.dispute.created", dispute);
  assert.equal(
    await change("evt_won", "charge.dispute.closed", { ...dispute, status: "won" }),
    "credited",
  );
  assert.equal((await world.balance("ada")).balance, "7.000000001");
  assert.equal(await tell({ ...event }), "booked", "the same event once more");
  assert.equal((await world.balance("ada")).balance, "7.000000001");
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("own keys: a key of a caller that names an erased user is removed, whatever it looks like", async () => {
  const { world, tell } = await paidWorld();
  using _ = world;
  await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "1" },
    headers: { "idempotency-key": "stripe:ada" },
  });
  await tell();
  await forgetWholly(world, { forfeit: true }, "ada");
  const rows = await world.deps.kv.list({ prefix: idempotencyPrefix, limit: 10 });
  assert.equal(rows.length, 2);
  assert.ok(!rows.some(({ key }) => key.includes("stripe:ada")));
  assert.equal(await tell(), "booked");
  assert.equal((await world.balance("ada")).balance, "0");
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});
