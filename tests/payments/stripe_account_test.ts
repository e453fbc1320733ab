import assert from "node:assert/strict";
import { onlyUnbooked, ownerStripe, paidWorld, unbookedLog } from "../support/payments.ts";
import { metricsToken, scrape } from "../support/prometheus.ts";
import { Device, openSession, pathOf, tellServer } from "../support/wallets.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const stripe = ownerStripe;

/** A page that is open in a browser, and its form. */
async function openPage(world: World) {
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  const device = new Device(world);
  const path = pathOf(body.url);
  const formId = /name="formId" value="([^"]+)"/.exec((await device.get(path)).html)?.[1] ?? "";
  return { send: () => device.post(path, { amount: "10", formId }) };
}

const change = (world: World, body: Body) =>
  world.json(`/v1/admin/projects/${world.projectId}`, { method: "PATCH", key: adminKey, body });

Deno.test("stripe: the payment itself says for whom it is", async () => {
  using world = await createWorld({ project: { name: "Helper", stripe } });
  const { metadata, payment } = await openSession(world);
  assert.equal(metadata.farebox_user, "ada");
  assert.deepEqual(payment, { metadata, description: "Helper: top-up for ada" });
});

Deno.test("stripe: a key that was used with other parameters is replaced by a fresh one", async () => {
  using world = await createWorld({ project: { name: "Helper", stripe } });
  const { send } = await openPage(world);
  const first = await send();
  await change(world, { name: "Renamed" });
  const second = await send();
  assert.deepEqual([first.status, second.status], [303, 303]);
  assert.notEqual(second.location, first.location);
  assert.equal((await send()).location, second.location, "the same form again");
  assert.equal(world.stripe.sessions.size, 2);
});

Deno.test("stripe: a key that is in use is waited for, and no second session is created", async () => {
  using world = await createWorld({ project: { name: "Helper", stripe } });
  const { send } = await openPage(world);
  world.stripe.inUse = 5;
  assert.equal((await send()).status, 303);
  assert.equal(new Set(world.stripe.keys).size, 1);
  assert.deepEqual([world.stripe.keys.length, world.stripe.sessions.size], [6, 1]);
});

for (
  const webhookSecret of [
    ["whsec_of_the_new", "whsec_of_the_old"],
    "whsec_of_the_new,whsec_of_the_old",
  ]
) {
  Deno.test(`stripe: of several signing secrets each is valid, given as ${typeof webhookSecret}`, async () => {
    const { world, tell } = await paidWorld({ project: { stripe: { ...stripe, webhookSecret } } });
    using _ = world;
    for (const secret of ["whsec_of_the_old", "whsec_of_the_new"]) {
      assert.equal((await tell({}, secret)).body.outcome, "booked");
    }
    for (const secret of ["whsec_of_another", "whsec_of_the_new,whsec_of_the_old", ","]) {
      assert.equal((await tell({ id: "cs_2", payment_intent: "pi_2" }, secret)).status, 400);
    }
    const { body } = await world.json(`/v1/admin/projects/${world.projectId}`, { key: adminKey });
    assert.deepEqual(body.project.stripe, {
      secretKey: { set: true },
      webhookSecret: { set: true },
    });
  });
}

Deno.test("stripe: lists of signing secrets that mean nothing are refused", async () => {
  using world = await createWorld();
  for (const webhookSecret of [[], ["short"], "whsec_1234,", ",whsec_1234", ["whsec_1,whsec_2"]]) {
    const { status } = await change(world, { stripe: { ...stripe, webhookSecret } });
    assert.equal(status, 400, JSON.stringify(webhookSecret));
  }
});

Deno.test("stripe: the server's own account takes several signing secrets too", async () => {
  const env = { STRIPE_SECRET_KEY: "sk_test_1", STRIPE_WEBHOOK_SECRET: "whsec_new,whsec_old" };
  using world = await createWorld({ env });
  const event = { id: "evt_1", type: "customer.created", data: { object: {} } };
  for (const secret of ["whsec_new", "whsec_old"]) {
    assert.equal((await tellServer(world, event, secret)).status, 200);
  }
  assert.equal((await tellServer(world, event, "whsec_other")).status, 400);
});

const refund = { id: "re_1", status: "failed", amount: 300, amount_refunded: 300 };
const changes: [type: string, object: Body][] = [
  ["charge.refunded", refund],
  ["refund.failed", refund],
  ["charge.dispute.created", { id: "dp_1", amount: 300, status: "needs_response" }],
  ["charge.dispute.funds_withdrawn", { id: "dp_1", amount: 300, status: "needs_response" }],
  ["charge.dispute.closed", { id: "dp_1", amount: 300, status: "won" }],
];
for (const [type, object] of changes) {
  Deno.test(`stripe: ${type} in another currency moves nothing, and is an error`, async () => {
    const { world, session, tell, tellEvent } = await paidWorld({
      env: { METRICS_TOKEN: metricsToken },
    });
    using _ = world;
    await tell();
    const about = { ...object, payment_intent: session.payment_intent };
    const { status } = await tellEvent(type, { ...about, currency: "jpy" });
    assert.equal(status, 400);
    assert.equal((await world.balance("ada")).balance, "10");
    const told = world.logged.find(({ event }) => event === "refund_not_booked");
    assert.partialDeepStrictEqual(told, { level: "error", user: "ada", currency: "jpy", type });
    const { series } = await scrape(world);
    const counter = 'farebox_payments_not_booked_total{reason="other_refund_currency"}';
    assert.equal(series.get(counter), 1);
    assert.equal((await tellEvent(type, { ...about, currency: "usd" })).status, 200);
  });
}

Deno.test("stripe: a refund in another currency that came before its payment does not stop it", async () => {
  const { world, session, tell, tellEvent } = await paidWorld();
  using _ = world;
  const object = { payment_intent: session.payment_intent, amount_refunded: 300, currency: "jpy" };
  assert.equal((await tellEvent("charge.refunded", object)).body.outcome, "kept");
  assert.equal((await tell()).body.outcome, "booked");
  assert.equal((await world.balance("ada")).balance, "10");
  assert.deepEqual(unbookedLog(world), []);
  assert.ok(world.logged.some(({ event }) => event === "refund_not_booked"));
  await tell({ amount_total: 1, id: "cs_2", payment_intent: "pi_2" });
  assert.equal(onlyUnbooked(world).reason, "other_amount");
});
