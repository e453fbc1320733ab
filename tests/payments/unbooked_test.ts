import assert from "node:assert/strict";
import Stripe from "stripe";
import { toBytes } from "../../src/base/json.ts";
import { allUnbookedPaymentsPrefix, unbookedPaymentKey } from "../../src/store/keys.ts";
import { signedIn, textOf, Visitor } from "../support/console.ts";
import { forgetWholly, rowsNaming } from "../support/forget.ts";
import { onlyUnbooked, ownerStripe, paidWorld, unbookedLog } from "../support/payments.ts";
import { keysUnder, put } from "../support/verify.ts";
import { sharedWorld, tellServer } from "../support/wallets.ts";
import { adminKey, type Body, type World } from "../support/world.ts";

const day = 24 * 60 * 60 * 1000;

async function overview(world: World): Promise<string> {
  return textOf((await (await signedIn(world)).get("activity")).html);
}

const refused: [label: string, changes: Body, reason: string, status: number][] = [
  ["another amount", { amount_total: 999 }, "other_amount", 400],
  ["no amount", { amount_total: null }, "other_amount", 400],
  ["another currency", { currency: "eur" }, "other_currency", 400],
  ["no currency", { currency: null }, "other_currency", 400],
  ["an amount in a shape of its own", { amount_total: "10.00" }, "unexpected_event", 400],
  ["an id without end", { id: `cs_${"x".repeat(4_000)}` }, "unexpected_event", 400],
  ["a payment without end", { payment_intent: "x".repeat(4_000) }, "unexpected_event", 400],
];
for (const [label, changes, reason, status] of refused) {
  Deno.test(`not booked: a signed session with ${label} is reported with both amounts`, async () => {
    const { world, tell } = await paidWorld();
    using _ = world;
    assert.equal((await tell(changes)).status, status);
    const told = onlyUnbooked(world);
    assert.deepEqual([told.level, told.reason, told.user], ["error", reason, "ada"]);
    assert.ok(told.isSigned);
    assert.match(await overview(world), new RegExp(reason));
    assert.equal((await world.balance("ada")).balance, "0");
  });
}

const strange: [label: string, metadata: Body, reason: string, status: number][] = [
  ["no user", { farebox_user: undefined }, "missing_user", 200],
  ["an empty user", { farebox_user: "" }, "invalid_user", 400],
  ["a user with a control character", { farebox_user: "a\nda" }, "invalid_user", 400],
  ["a user that is not well-formed", { farebox_user: "ada\ud800" }, "invalid_user", 400],
  ["a user without end", { farebox_user: "x".repeat(3_000) }, "invalid_user", 400],
  ["an unknown project", { farebox_project: "pw_0" }, "unknown_project", 200],
  ["a project without end", { farebox_project: "x".repeat(3_000) }, "unknown_project", 200],
  ["a wallet", { farebox_person: "per_1", farebox_connection: "con_1" }, "other_wallet", 200],
];
for (const [label, metadata, reason, status] of strange) {
  Deno.test(`not booked: a signed session for ${label} is reported, and nothing breaks`, async () => {
    const { world, session, tell } = await paidWorld();
    using _ = world;
    const answer = await tell({ metadata: { ...session.metadata, ...metadata } });
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    if (status === 200) assert.equal(answer.body.outcome, "ignored");
    assert.equal(onlyUnbooked(world).reason, reason);
    assert.match(await overview(world), new RegExp(reason));
    const unpaid = { payment_status: "unpaid", metadata: { ...session.metadata, ...metadata } };
    assert.equal((await tell(unpaid)).status, status, "not paid yet");
    assert.equal(unbookedLog(world).length, 1);
  });
}

Deno.test("not booked: impossible ids in signed refunds and disputes are a 400", async () => {
  const { world, tellEvent } = await paidWorld();
  using _ = world;
  const long = "x".repeat(4_000);
  const charge = { id: "dp_1", payment_intent: "pi_1", amount: 5, amount_refunded: 5 };
  for (const type of ["charge.refunded", "charge.dispute.created"]) {
    assert.equal((await tellEvent(type, { ...charge, payment_intent: long })).status, 400);
    assert.equal((await tellEvent(type, charge, `evt_${long}`)).status, 400);
  }
  const dispute = { ...charge, id: long, status: "needs_response" };
  assert.equal((await tellEvent("charge.dispute.created", dispute)).status, 400);
  for (const event of [null, 7, "text", [], { type: "checkout.session.completed" }]) {
    const path = `/v1/stripe/${world.projectId}`;
    const answer = await tellServer(world, event as Body, ownerStripe.webhookSecret, path);
    assert.equal(answer.status, 400, JSON.stringify(event));
  }
});

Deno.test("not booked: a timestamp from the future is as invalid as an old one", async () => {
  const { world, session } = await paidWorld();
  using _ = world;
  const event = { id: "evt_1", type: "checkout.session.completed", data: { object: session } };
  const payload = JSON.stringify(event);
  const tellAt = async (offsetMs: number) => {
    const header = await new Stripe("sk_test").webhooks.generateTestHeaderStringAsync({
      payload,
      secret: ownerStripe.webhookSecret,
      timestamp: Math.floor((world.clock.now() + offsetMs) / 1000),
      cryptoProvider: Stripe.createSubtleCryptoProvider(),
    });
    const headers = { "stripe-signature": header, "content-length": String(payload.length) };
    const path = `/v1/stripe/${world.projectId}`;
    return (await world.json(path, { key: null, raw: payload, headers })).status;
  };
  assert.deepEqual([await tellAt(302_000), await tellAt(-302_000)], [400, 400]);
  assert.equal((await world.balance("ada")).balance, "0");
  assert.deepEqual([await tellAt(299_000), await tellAt(-299_000)], [200, 200]);
});

Deno.test("not booked: projects with one Stripe account hear of each other's payments in silence", async () => {
  const { world, session } = await paidWorld();
  using _ = world;
  const other = await world.makeProject({ stripe: ownerStripe });
  const event = { id: "evt_1", type: "checkout.session.completed", data: { object: session } };
  const path = `/v1/stripe/${other.projectId}`;
  const { status, body } = await tellServer(world, event, ownerStripe.webhookSecret, path);
  assert.deepEqual([status, body.outcome, unbookedLog(world)], [200, "ignored", []]);
});

Deno.test("not booked: what no one paid, or is booked already, is not reported", async () => {
  const { world, tell } = await paidWorld();
  using _ = world;
  await tell({ payment_status: "unpaid", amount_total: 1 });
  await tell({ payment_status: "unpaid" }, "whsec_of_before");
  await tell({ metadata: {} }, "whsec_of_before");
  await tell({ metadata: { farebox_project: "pw_0" } }, "whsec_of_before");
  await tell();
  await tell({}, "whsec_of_before");
  assert.deepEqual(unbookedLog(world), []);
});

Deno.test("not booked: a report is listed until 90 days have passed", async () => {
  const { world, tell } = await paidWorld();
  using _ = world;
  await tell({ id: "cs_signed", payment_intent: "pi_signed", amount_total: 1 });
  await tell({ id: "cs_signed", payment_intent: "pi_signed" }, "whsec_of_a_stranger");
  assert.match(await overview(world), /cs_signed.* other_amount/);
  await world.clock.advance(91 * day);
  await world.app.sweep();
  assert.deepEqual(await keysUnder(world, allUnbookedPaymentsPrefix), []);
});

Deno.test("not booked: what version 0.9.0 stored without a signature is no payment", async () => {
  const { world, session } = await paidWorld();
  using _ = world;
  const row = {
    ...{ sessionId: session.id, projectId: world.projectId, user: "ada", paid: null },
    ...{ requested: null, reason: "invalid_signature", isSigned: false },
    ...{ firstAt: world.clock.now(), lastAt: world.clock.now(), count: 1 },
  };
  await put(world, unbookedPaymentKey(world.projectId, session.id), toBytes(row));
  assert.doesNotMatch(await overview(world), /not booked/);
});

Deno.test("not booked: a report of an erased user is deleted", async () => {
  const { world, tell } = await paidWorld();
  using _ = world;
  await world.deposit("ada", "1");
  await tell({ amount_total: 1 });
  await forgetWholly(world, { forfeit: true }, "ada");
  assert.deepEqual(await rowsNaming(world, '"ada"'), []);
});

Deno.test("not booked: the operator sees payments into wallets, the owner those of the project", async () => {
  using world = await sharedWorld();
  const metadata = { farebox_project: world.projectId, farebox_user: "ada", farebox_units: "1000" };
  const session = { id: "cs_1", amount_total: 1000, currency: "usd", payment_status: "paid" };
  const tell = (object: Body) =>
    tellServer(world, { id: "evt_1", type: "checkout.session.completed", data: { object } });
  await tell({ ...session, metadata });
  await tell({ ...session, id: "cs_2", metadata: { ...metadata, farebox_project: "pw_0" } });
  const operator = new Visitor(world);
  await operator.signIn(adminKey);
  const all = textOf((await operator.get("/console/projects")).html);
  assert.match(all, /cs_1/);
  assert.match(all, /cs_2/);
  const own = await overview(world);
  assert.match(own, /cs_1/);
  assert.doesNotMatch(own, /cs_2/);
});
