import assert from "node:assert/strict";
import { allStripePaymentsPrefix } from "../../src/store/keys.ts";
import { ownerStripe, type PaidWorld, paidWorld } from "../support/payments.ts";
import { edit, keysUnder, verify } from "../support/verify.ts";
import { adminKey, type Body } from "../support/world.ts";

/** What Stripe tells of a payment of ten dollars: the event's type, and its object's fields. */
type Told = [type: string, object: Body];

const inAll = (cents: number): Told => ["charge.refunded", { amount_refunded: cents }];
const refund = (type: string, id: string, amount: number, status = "succeeded"): Told => [
  type,
  { object: "refund", id, amount, status },
];
const dispute = (type: string, amount: number, status = "needs_response"): Told => [
  `charge.dispute.${type}`,
  { object: "dispute", id: "dp_1", amount, status },
];
const failed = (type: string, id: string, amount: number) => refund(type, id, amount, "failed");

const cases: [label: string, told: Told[], balance: string][] = [
  ["one refund under two event ids", [inAll(300), inAll(300)], "7"],
  ["one refund, told in three ways", [
    inAll(300),
    refund("refund.created", "re_1", 300, "pending"),
    refund("charge.refund.updated", "re_1", 300),
  ], "7"],
  ["a refund that is told by itself only", [refund("refund.created", "re_1", 300)], "7"],
  ["a refund that is told by its update only", [refund("refund.updated", "re_1", 300)], "7"],
  ["two refunds, of which the first event is missing", [inAll(700)], "3"],
  ["two refunds, by sum and by themselves", [
    inAll(300),
    refund("refund.created", "re_2", 400),
    inAll(700),
    refund("refund.created", "re_1", 300),
  ], "3"],
  ["a refund under two event ids that fails", [
    inAll(300),
    inAll(300),
    failed("refund.failed", "re_1", 300),
  ], "10"],
  ["a failure that is told in three ways", [
    inAll(300),
    failed("refund.failed", "re_1", 300),
    failed("refund.updated", "re_1", 300),
    failed("charge.refund.updated", "re_1", 300),
  ], "10"],
  ["a canceled refund", [
    refund("refund.created", "re_1", 300, "pending"),
    refund("refund.updated", "re_1", 300, "canceled"),
  ], "10"],
  ["one of two refunds fails", [inAll(300), inAll(700), failed("refund.failed", "re_2", 400)], "7"],
  ["a failed refund is made again, and Stripe's sum no longer has it", [
    inAll(300),
    refund("refund.created", "re_1", 300),
    failed("refund.failed", "re_1", 300),
    refund("refund.created", "re_2", 300),
  ], "7"],
  ["a failed refund is made again, and Stripe's sum has both", [
    inAll(300),
    failed("refund.failed", "re_1", 300),
    inAll(600),
  ], "7"],
  ["a refund and a dispute of a part", [inAll(300), inAll(300), dispute("created", 200)], "5"],
  ["a refund, and a dispute of another part that is won", [
    refund("refund.created", "re_1", 300),
    dispute("funds_withdrawn", 200),
    dispute("closed", 200, "won"),
    inAll(300),
  ], "7"],
];

function ordersOf<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, at) =>
    ordersOf(items.toSpliced(at, 1)).map((others) => [item, ...others])
  );
}

async function tellAll({ session, tellEvent }: PaidWorld, told: readonly Told[]): Promise<void> {
  for (const [type, object] of told) {
    const about = { payment_intent: session.payment_intent, currency: "usd", ...object };
    const { status, body } = await tellEvent(type, about);
    assert.equal(status, 200, JSON.stringify(body));
  }
}

const balanceOf = async ({ world }: PaidWorld) => (await world.balance("ada")).balance;

for (const [label, told, balance] of cases) {
  Deno.test(`stripe: ${label}: what was refunded is taken, in any order`, async () => {
    for (const order of ordersOf(told)) {
      const paid = await paidWorld();
      using world = paid.world;
      await paid.tell();
      await tellAll(paid, order);
      assert.equal(await balanceOf(paid), balance, order.map(([type]) => type).join());
      assert.deepEqual((await verify(world)).faults, []);
    }
    const early = await paidWorld();
    using world = early.world;
    await tellAll(early, told);
    await early.tell();
    assert.equal(await balanceOf(early), balance, `${world.projectId}: before the payment`);
  });
}

Deno.test("stripe: what 0.9.0 took is not taken again, and comes back when the refund fails", async () => {
  const paid = await paidWorld();
  using world = paid.world;
  await paid.tell();
  await tellAll(paid, [inAll(300)]);
  const [key] = await keysUnder(world, allStripePaymentsPrefix);
  await edit<Body>(world, key ?? assert.fail(), ({ since, ...payment }) => {
    const { refundedInAll: _, refunds: __, ...before } = since;
    return { ...payment, since: { ...before, refunded: { evt_of_before: 300 } } };
  });
  await tellAll(paid, [inAll(300), refund("refund.updated", "re_1", 300)]);
  assert.equal(await balanceOf(paid), "7");
  await tellAll(paid, [inAll(500)]);
  assert.equal(await balanceOf(paid), "5");
  await tellAll(paid, [failed("refund.failed", "re_1", 300)]);
  assert.equal(await balanceOf(paid), "8");
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("stripe: reconciling takes each refund once, however many events tell of it", async () => {
  const paid = await paidWorld();
  using world = paid.world;
  await paid.tell();
  const event = (id: string, type: string, object: Body) => ({
    id,
    object: "event",
    type,
    created: Math.floor(world.clock.now() / 1000),
    data: { object: { payment_intent: paid.session.payment_intent, currency: "usd", ...object } },
  });
  world.stripe.events = [
    event("evt_3", ...refund("refund.created", "re_1", 300)),
    event("evt_2", ...inAll(300)),
    event("evt_1", ...inAll(300)),
  ];
  for (let time = 0; time < 2; time++) {
    const { status } = await world.json(
      `/v1/admin/projects/${world.projectId}/stripe/reconcile`,
      { key: adminKey, body: { since: "2026-01-01T00:00:00Z", cursor: "changes" } },
    );
    assert.equal(status, 200);
    assert.equal(await balanceOf(paid), "7");
  }
  const listed = world.stripe.lists.at(-1)?.toString() ?? "";
  for (const type of ["charge.refunded", "refund.created", "refund.updated", "refund.failed"]) {
    assert.ok(decodeURIComponent(listed).includes(type), type);
  }
});

const onTop = { amount_subtotal: 1000, amount_total: 1190 };
const taxed: [label: string, changes: Body, booked: string | null][] = [
  [
    "on top, with details",
    { ...onTop, total_details: { amount_tax: 190, amount_discount: 0 } },
    "10",
  ],
  ["on top, without details", onTop, "10"],
  ["on top, without a subtotal", { amount_total: 1190, total_details: { amount_tax: 190 } }, "10"],
  ["inside the price", {
    amount_subtotal: 1000,
    amount_total: 1000,
    total_details: { amount_tax: 160 },
  }, "10"],
  ["inside the price, without a subtotal", { total_details: { amount_tax: 160 } }, "10"],
  ["none, and more was paid", { amount_total: 1190 }, null],
  ["on top of another amount", { amount_subtotal: 900, amount_total: 1071 }, null],
  ["on top, after a discount", {
    ...onTop,
    amount_total: 1071,
    total_details: { amount_tax: 171, amount_discount: 100 },
  }, null],
  ["a discount as large as the tax", {
    amount_subtotal: 1000,
    amount_total: 1000,
    total_details: { amount_tax: 160, amount_discount: 160 },
  }, null],
];
for (const [label, changes, booked] of taxed) {
  Deno.test(`stripe: tax ${label}: ${booked === null ? "is not booked" : "the amount before it is booked"}`, async () => {
    const paid = await paidWorld();
    using _ = paid.world;
    const pending = await paid.tell({ ...changes, payment_status: "unpaid" });
    assert.equal(pending.status, 200);
    const { status } = await paid.tell(changes);
    assert.equal(status, booked === null ? 400 : 200);
    assert.equal(await balanceOf(paid), booked ?? "0");
  });
}

Deno.test("stripe: a refund of a payment with tax takes its part without the tax", async () => {
  const paid = await paidWorld();
  using world = paid.world;
  await paid.tell(onTop);
  await tellAll(paid, [inAll(595)]);
  assert.equal(await balanceOf(paid), "5");
  await tellAll(paid, [failed("refund.failed", "re_1", 595), dispute("created", 1190)]);
  assert.equal(await balanceOf(paid), "0");
  await tellAll(paid, [dispute("closed", 1190, "won"), inAll(1785)]);
  assert.equal(await balanceOf(paid), "0");
  assert.deepEqual((await verify(world)).faults, []);
});

const modes: [secretKey: string, livemode: boolean, isTaken: boolean][] = [
  ["sk_live_of_the_owner", true, true],
  ["sk_live_of_the_owner", false, false],
  ["rk_live_of_the_owner", false, false],
  ["sk_test_of_the_owner", false, true],
  ["sk_test_of_the_owner", true, false],
];
for (const [secretKey, livemode, isTaken] of modes) {
  Deno.test(`stripe: an event with livemode ${livemode} is ${isTaken ? "taken" : "refused and reported"} at a project with ${secretKey}`, async () => {
    const paid = await paidWorld();
    using world = paid.world;
    const stripe = { ...ownerStripe, secretKey };
    await world.json(`/v1/admin/projects/${world.projectId}`, {
      method: "PATCH",
      key: adminKey,
      body: { stripe },
    });
    const { status, body } = await paid.tell({ livemode });
    assert.equal(status, isTaken ? 200 : 400);
    assert.equal(await balanceOf(paid), isTaken ? "10" : "0");
    const refunded = {
      payment_intent: paid.session.payment_intent,
      amount_refunded: 300,
      livemode,
    };
    assert.equal((await paid.tellEvent("charge.refunded", refunded)).status, isTaken ? 200 : 400);
    assert.equal(await balanceOf(paid), isTaken ? "7" : "0");
    const other = await paid.tellEvent("customer.created", { livemode });
    assert.deepEqual([other.status, other.body.outcome], [200, "ignored"]);
    if (isTaken) return;
    assert.match(body.error.message, /test mode/);
    const reported = world.logged.filter(({ reason }) => reason === "other_mode");
    assert.deepEqual(reported.map(({ event }) => event), [
      "payment_not_booked",
      "refund_not_booked",
    ]);
  });
}
