import assert from "node:assert/strict";
import { allStripeReversalsPrefix } from "../../src/store/keys.ts";
import { readSummary } from "../../src/summaries/summary.ts";
import { forgetWholly, rowsNaming } from "../support/forget.ts";
import type { Session } from "../support/stripe.ts";
import { keysUnder, verify } from "../support/verify.ts";
import { allow, charge, Device, pay, sharedWorld, tellServer } from "../support/wallets.ts";
import { createWorld, type World } from "../support/world.ts";

/** An event about a payment of ten dollars. */
function eventOf(session: Session, type: string, object: Record<string, unknown> = {}) {
  const { payment_intent } = session;
  const id = `evt_${type}_${object.amount_refunded ?? object.status}`;
  return {
    id,
    object: "event",
    type,
    data: { object: { payment_intent, amount: 1000, ...object } },
  };
}

/** The events that Stripe sends about one dispute, from its start. */
function disputeOf(session: Session) {
  const tell = (type: string, status: string) =>
    eventOf(session, `charge.dispute.${type}`, { id: "dp_1", object: "dispute", status });
  return {
    asked: tell("created", "warning_needs_response"),
    dropped: tell("closed", "warning_closed"),
    created: tell("created", "needs_response"),
    withdrawn: tell("funds_withdrawn", "needs_response"),
    lost: tell("closed", "lost"),
    won: tell("closed", "won"),
    reinstated: tell("funds_reinstated", "won"),
  };
}

const refundOf = (session: Session, amount_refunded: number) =>
  eventOf(session, "charge.refunded", { amount_refunded });

async function walletWorld(): Promise<World> {
  const world = await sharedWorld();
  await allow(new Device(world), { cap: "1000" });
  return world;
}

/** Sends each event, and returns the outcomes. */
async function tellAll(world: World, events: ReturnType<typeof eventOf>[]): Promise<unknown[]> {
  const outcomes: unknown[] = [];
  for (const event of events) outcomes.push((await tellServer(world, event)).body.outcome);
  return outcomes;
}

const balanceOf = async (world: World) => (await world.balance("ada")).balance;

async function requireSound(world: World): Promise<void> {
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
  assert.deepEqual(await keysUnder(world, allStripeReversalsPrefix), []);
}

Deno.test("stripe: an inquiry takes nothing until its money is withdrawn", async () => {
  using world = await walletWorld();
  const { asked, dropped, withdrawn, lost } = disputeOf((await pay(world)).session);
  assert.deepEqual(await tellAll(world, [asked, dropped]), ["ignored", "ignored"]);
  assert.equal(await balanceOf(world), "10");
  const outcomes = await tellAll(world, [withdrawn, withdrawn, lost]);
  assert.deepEqual(outcomes, ["debited", "debited", "ignored"]);
  assert.equal(await balanceOf(world), "0");
  assert.equal((await world.activities("ada")).length, 2);
});

function ordersOf<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, at) =>
    ordersOf(items.toSpliced(at, 1)).map((others) => [item, ...others])
  );
}

Deno.test("stripe: a won dispute reinstates what was taken, once, in any order", async () => {
  using world = await walletWorld();
  const { session: one } = await pay(world);
  const names = Object.keys(disputeOf(one)) as (keyof ReturnType<typeof disputeOf>)[];
  const told = names.filter((name) => ["created", "withdrawn", "won", "reinstated"].includes(name));
  let balance = 10;
  for (const order of ordersOf(told)) {
    const { session } = await pay(world);
    balance += 10;
    const n = session.id;
    const renamed = order.map((name) => disputeOf(session)[name]).map((event) => ({
      ...event,
      id: `${event.id}_${n}`,
    }));
    await tellAll(world, [...renamed, ...renamed]);
    assert.equal(await balanceOf(world), String(balance), order.join());
  }
  await requireSound(world);
});

Deno.test("stripe: concurrent events of one dispute take once, and reinstate once", async () => {
  using world = await walletWorld();
  const { created, withdrawn, won, reinstated } = disputeOf((await pay(world)).session);
  for (
    const [events, balance] of [[[created, withdrawn], "0"], [[won, reinstated], "10"]] as const
  ) {
    const told = await Promise.all([...events, ...events].map((event) => tellServer(world, event)));
    assert.deepEqual(told.map(({ status }) => status), [200, 200, 200, 200]);
    assert.equal(await balanceOf(world), balance);
  }
  await requireSound(world);
});

Deno.test("stripe: a dispute won before its payment is reported has no effect", async () => {
  using world = await walletWorld();
  const { session, event } = await pay(world);
  const later = { ...session, id: "cs_later", payment_intent: "pi_later" };
  const { created, won } = disputeOf(later);
  assert.deepEqual(await tellAll(world, [won, created]), ["kept", "kept"]);
  const paid = {
    ...event,
    id: "evt_later",
    data: { object: { ...later, payment_status: "paid" } },
  };
  assert.equal((await tellServer(world, paid)).body.outcome, "booked");
  assert.equal(await balanceOf(world), "20");
  // Nothing was ever taken for this one, so nothing is returned.
  const untaken = [disputeOf(session).won, { ...failureOf(session)[1] ?? assert.fail() }];
  assert.deepEqual(await tellAll(world, [...untaken, ...untaken]), Array(4).fill("ignored"));
  assert.equal(await balanceOf(world), "20");
  await requireSound(world);
});

Deno.test("stripe: no more is reinstated than could be taken, and it can be taken again", async () => {
  using world = await walletWorld();
  const { session } = await pay(world);
  assert.equal((await charge(world, "7")).success, true);
  const { created, won } = disputeOf(session);
  assert.deepEqual(await tellAll(world, [created, won]), ["debited", "credited"]);
  const [back, taken] = await world.activities("ada");
  assert.deepEqual([taken?.kind, taken?.amount, taken?.shortfall], ["refund", "3", "7"]);
  assert.deepEqual([back?.kind, back?.amount, back?.balanceAfter], ["deposit", "3", "3"]);
  assert.equal(back?.refundedActivityId, taken?.refundedActivityId);
  assert.equal(back?.shortfall, "-7", "the 7 are short no more");
  await pay(world);
  await tellAll(world, [refundOf(session, 1000)]);
  const [again] = await world.activities("ada");
  assert.deepEqual([again?.amount, again?.shortfall, again?.balanceAfter], ["10", "0", "3"]);
  await requireSound(world);
});

Deno.test("stripe: a payment of which nothing could be taken is whole when its dispute is won", async () => {
  using world = await walletWorld();
  const { session } = await pay(world);
  assert.equal((await charge(world, "10")).success, true);
  const { created, won, reinstated } = disputeOf(session);
  const outcomes = await tellAll(world, [created, won, reinstated, won]);
  assert.deepEqual(outcomes, ["debited", "credited", "credited", "credited"]);
  const [back, taken] = await world.activities("ada");
  assert.deepEqual([taken?.kind, taken?.amount, taken?.shortfall], ["refund", "0", "10"]);
  assert.deepEqual([back?.kind, back?.amount, back?.shortfall], ["deposit", "0", "-10"]);
  await world.app.flush();
  const span = { from: 0, to: world.clock.now() + 1 };
  const { totals } = await readSummary(world.deps.kv, world.projectId, span);
  assert.equal(totals.shortfall, 0n);
  await pay(world);
  await tellAll(world, [refundOf(session, 1000)]);
  assert.equal(await balanceOf(world), "0");
  await requireSound(world);
});

Deno.test("stripe: of a partly refunded payment, only the refund stays short when the dispute is won", async () => {
  using world = await walletWorld();
  const { session } = await pay(world);
  assert.equal((await charge(world, "9")).success, true);
  const { created, won } = disputeOf(session);
  await tellAll(world, [refundOf(session, 300), created]);
  const shortfalls = async () => (await world.activities("ada")).map((entry) => entry.shortfall);
  assert.deepEqual((await shortfalls()).slice(0, 2), ["7", "2"]);
  await tellAll(world, [won]);
  assert.deepEqual((await shortfalls())[0], "-7");
  assert.equal(await balanceOf(world), "0");
  await requireSound(world);
});

Deno.test("stripe: a refund stays taken when the dispute is won, in any order", async () => {
  using world = await walletWorld();
  let balance = 0;
  for (let order = 0; order < 6; order++) {
    const { session } = await pay(world);
    const { created, reinstated } = disputeOf(session);
    const events = [refundOf(session, 300), created, reinstated].map((event) => ({
      ...event,
      id: `${event.id}_${order}`,
    }));
    await tellAll(world, ordersOf(events)[order] ?? []);
    balance += 7;
    assert.equal(await balanceOf(world), String(balance), `order ${order}`);
  }
  await requireSound(world);
});

/** The events of a full refund that the bank rejects, in Stripe's old and new terms. */
function failureOf(session: Session, status = "failed") {
  const refund = { id: `re_${session.id}`, object: "refund", status };
  const tell = (type: string) => {
    const event = eventOf(session, type, refund);
    return { ...event, id: `${event.id}_${session.id}` };
  };
  const made = refundOf(session, 1000);
  return [
    { ...made, id: `${made.id}_${session.id}` },
    tell("refund.failed"),
    tell("charge.refund.updated"),
  ];
}

Deno.test("stripe: a failed refund reinstates what was taken, once, in any order", async () => {
  using world = await walletWorld();
  let balance = 0;
  for (const [at, status] of ["failed", "canceled"].entries()) {
    for (let order = 0; order < 6; order++) {
      const { session } = await pay(world);
      const told = ordersOf(failureOf(session, status))[order] ?? [];
      await tellAll(world, [...told, ...told]);
      balance += 10;
      assert.equal(await balanceOf(world), String(balance), `${at} ${order}`);
    }
  }
  await requireSound(world);
});

Deno.test("stripe: a pending or successful refund reinstates nothing; one after a failure is taken", async () => {
  using world = await walletWorld();
  const { session } = await pay(world);
  const [made, failed] = failureOf(session);
  assert.ok(made && failed);
  for (const status of ["pending", "succeeded", null]) {
    const refund = { id: `re_${session.id}`, object: "refund", status };
    const updated = eventOf(session, "refund.updated", refund);
    const outcomes = await tellAll(world, [made, updated]);
    assert.deepEqual(outcomes, ["debited", status === "pending" ? "ignored" : "debited"]);
  }
  assert.equal(await balanceOf(world), "0");
  assert.deepEqual(await tellAll(world, [failed, failed]), ["credited", "credited"]);
  assert.equal(await balanceOf(world), "10");
  const refund = { id: "re_2", object: "refund", status: "pending" };
  const again = { ...eventOf(session, "refund.created", refund), id: "evt_again" };
  assert.deepEqual(await tellAll(world, [again, again, failed]), [
    "debited",
    "debited",
    "credited",
  ]);
  assert.equal(await balanceOf(world), "0");
  const lost = eventOf(session, "refund.failed", { id: 5 });
  assert.equal((await tellServer(world, lost)).status, 400, "a shape that nobody knows");
  await requireSound(world);
});

Deno.test("stripe: an erased user's reinstatement is recorded under the pseudonym", async () => {
  const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
  using world = await createWorld({ project: { stripe } });
  const payment = { farebox_project: world.projectId, farebox_user: "ada", farebox_units: "1000" };
  const session = { id: "cs_1", payment_intent: "pi_1", amount_total: 1000, currency: "usd" };
  const paid = { ...session, metadata: payment, payment_status: "paid" };
  const tell = (event: ReturnType<typeof eventOf>) =>
    tellServer(world, event, stripe.webhookSecret, `/v1/stripe/${world.projectId}`);
  await tell(eventOf(session, "checkout.session.completed", paid));
  const { created, won } = disputeOf(session);
  await tell(created);
  const { pseudonym } = await forgetWholly(world, {}, "ada");
  assert.equal((await tell(won)).body.outcome, "credited");
  assert.equal((await world.balance(pseudonym)).balance, "10");
  assert.deepEqual(await rowsNaming(world, '"ada"'), []);
  const [back] = await world.activities(pseudonym);
  const refund = { user: pseudonym, activityId: back?.id };
  const { status, body } = await world.json("/v1/user/refund", { body: refund });
  assert.deepEqual([status, body.error.code], [400, "not_refundable"]);
  await requireSound(world);
});

Deno.test("stripe: what a bank holds is not reinstated by other events of the payment", async () => {
  const failed = { id: "re_1", object: "refund", amount: 500, status: "failed" };
  for (
    const [type, object] of [["refund.failed", failed], ["charge.refunded", {
      amount_refunded: 400,
    }]] as const
  ) {
    using world = await walletWorld();
    const { session } = await pay(world);
    const { created } = disputeOf(session);
    await tellAll(world, [created, eventOf(session, type, object)]);
    assert.equal(await balanceOf(world), "0", type);
    await requireSound(world);
  }
});

Deno.test("stripe: a refund of the least amount is taken back too", async () => {
  using world = await walletWorld();
  const { session } = await pay(world);
  assert.deepEqual(await tellAll(world, [refundOf(session, 1)]), ["debited"]);
  assert.equal(await balanceOf(world), "9.99");
});
