import assert from "node:assert/strict";
import Stripe from "stripe";
import { toAmount, unit } from "../../src/base/money.ts";
import { fromStripeUnits, toStripeUnits } from "../../src/payments/stripe.ts";
import { allStripeReversalsPrefix } from "../../src/store/keys.ts";
import { forgetWholly, rowsNaming } from "../support/forget.ts";
import type { Session } from "../support/stripe.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";
import { keysUnder } from "../support/verify.ts";
import { sharedWorld, tellServer } from "../support/wallets.ts";
import { deliver, subscribe } from "../support/webhooks.ts";

const keys = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };

async function payingWorld(project: Record<string, unknown> = {}): Promise<World> {
  return await createWorld({ project: { name: "Helper", stripe: keys, ...project } });
}

async function pagePath(world: World, user = "ada"): Promise<string> {
  const { body } = await world.json(`/v1/user/balance/topup?user=${user}`);
  return new URL(body.url).pathname;
}

const formIdOf = (html: string) => /name="formId" value="([^"]+)"/.exec(html)?.[1] ?? "";

async function choose(world: World, path: string, amount: string, formId?: string) {
  const page = await (await world.call(path, { key: null })).text();
  const raw = new URLSearchParams({ amount, formId: formId ?? formIdOf(page) }).toString();
  return await world.call(path, {
    key: null,
    raw,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "content-length": String(raw.length),
    },
  });
}

/** Chooses an amount on the page, and returns the session that it opens. */
async function checkout(world: World, amount = "10"): Promise<Session> {
  const response = await choose(world, await pagePath(world), amount);
  assert.equal(response.status, 303, await response.text());
  const session = [...world.stripe.sessions.values()].at(-1);
  assert.equal(response.headers.get("location"), session?.url);
  return session ?? assert.fail();
}

let events = 0;

/** Sends an event as Stripe does, signed by its own library. */
async function tell(
  world: World,
  type: string,
  object: Record<string, unknown>,
  more: { id?: string; secret?: string; previous?: Record<string, unknown>; at?: number } = {},
) {
  const { id = `evt_${++events}`, secret = keys.webhookSecret, previous } = more;
  const payload = JSON.stringify({
    id,
    object: "event",
    type,
    data: { object, ...(previous ? { previous_attributes: previous } : {}) },
  });
  const timestamp = Math.floor((more.at ?? world.clock.now()) / 1000);
  const cryptoProvider = Stripe.createSubtleCryptoProvider();
  const header = await new Stripe("sk_test").webhooks.generateTestHeaderStringAsync({
    payload,
    secret,
    timestamp,
    cryptoProvider,
  });
  return await world.json(`/v1/stripe/${world.projectId}`, {
    key: null,
    raw: payload,
    headers: { "stripe-signature": header, "content-length": String(payload.length) },
  });
}

const paid = (session: Session): Session => ({ ...session, payment_status: "paid" });

Deno.test("stripe: a paid session is recorded once, whatever is repeated, and the chat continues", async () => {
  using world = await payingWorld();
  await subscribe(world, { events: ["balance.*", "stripe.*"] });
  const session = await checkout(world);
  assert.deepEqual([session.amount_total, session.currency, session.mode], [
    1000,
    "usd",
    "payment",
  ]);
  assert.equal((await world.balance("ada")).balance, "0", "nothing before it is paid");
  await tell(world, "checkout.session.completed", session);
  assert.equal((await world.balance("ada")).balance, "0", "completed, and not paid yet");
  const answers = await Promise.all([
    tell(world, "checkout.session.completed", paid(session), { id: "evt_same" }),
    tell(world, "checkout.session.completed", paid(session), { id: "evt_same" }),
    tell(world, "checkout.session.async_payment_succeeded", paid(session)),
  ]);
  for (const { status } of answers) assert.equal(status, 200);
  assert.equal((await world.balance("ada")).balance, "10");
  await deliver(world);
  assert.deepEqual(world.subscriber.types().sort(), [
    "balance.deposit.created",
    "balance.topup.link.created",
    "stripe.checkout.session.completed",
  ]);
  const [entry] = await world.activities("ada");
  assert.deepEqual(entry?.metadata, { source: "stripe", checkoutSessionId: session.id });
});

Deno.test("stripe: the same form twice is one session, and opening the page creates none", async () => {
  using world = await payingWorld();
  const path = await pagePath(world);
  const page = await (await world.call(path, { key: null })).text();
  await (await world.call(path, { key: null })).text();
  assert.equal(world.stripe.sessions.size, 0);
  const formId = formIdOf(page);
  const [one, two] = await Promise.all([
    choose(world, path, "5", formId),
    choose(world, path, "5", formId),
  ]);
  assert.equal(one.headers.get("location"), two.headers.get("location"));
  assert.equal(world.stripe.sessions.size, 1);
  await choose(world, path, "5");
  assert.equal(world.stripe.sessions.size, 2, "another page is another checkout");
});

Deno.test("stripe: an event with a wrong or old signature changes nothing", async () => {
  using world = await payingWorld();
  const session = paid(await checkout(world));
  const old = { at: world.clock.now() - 301_000 };
  for (const more of [{ secret: "whsec_of_another" }, old]) {
    const { status, body } = await tell(world, "checkout.session.completed", session, more);
    assert.deepEqual([status, body.error.code], [400, "invalid_signature"]);
  }
  for (const header of ["", "t=1,v1=00", "nonsense"]) {
    const { status } = await world.json(`/v1/stripe/${world.projectId}`, {
      key: null,
      raw: "{}",
      headers: { "stripe-signature": header, "content-length": "2" },
    });
    assert.equal(status, 400, header);
  }
  assert.equal((await world.balance("ada")).balance, "0");
});

Deno.test("stripe: a session that is not ours, or of another amount or currency, is not recorded", async () => {
  using world = await payingWorld();
  const session = paid(await checkout(world));
  const completed = "checkout.session.completed";
  const foreign = [{}, { farebox_project: "pw_0", farebox_user: "ada", farebox_units: "1000" }];
  for (const metadata of foreign) {
    const { status, body } = await tell(world, completed, { ...session, metadata });
    assert.deepEqual([status, body.outcome], [200, "ignored"]);
  }
  for (const wrong of [{ amount_total: 999 }, { currency: "eur" }]) {
    assert.equal((await tell(world, completed, { ...session, ...wrong })).status, 400);
  }
  assert.equal((await tell(world, "customer.created", {})).body.outcome, "ignored");
  assert.equal((await world.balance("ada")).balance, "0");
});

Deno.test("stripe: a session of another server with the same account is ignored", async () => {
  using world = await sharedWorld();
  const metadata = {
    farebox_project: "pw_01KDVDNA0047C4FEZDQK8YZG99",
    farebox_user: "ada",
    farebox_units: "1000",
    farebox_person: "per_01KDVDNA0047C4FEZDQK8YZG98",
    farebox_connection: "con_01KDVDNA0047C4FEZDQK8YZG97",
  };
  const session = { id: "cs_other", amount_total: 1000, currency: "usd", payment_intent: "pi_o" };
  const { status, body } = await tellServer(world, {
    id: "evt_other",
    type: "checkout.session.completed",
    data: { object: { ...session, metadata, payment_status: "paid" } },
  });
  assert.deepEqual([status, body.outcome], [200, "ignored"]);
});

Deno.test("stripe: refunds and disputes take back what is available, and record the rest", async () => {
  using world = await payingWorld();
  const session = paid(await checkout(world));
  await tell(world, "checkout.session.completed", session);
  const charge = { payment_intent: session.payment_intent, amount: 1000 };
  const refund = (total: number, before: number, id: string) =>
    tell(world, "charge.refunded", { ...charge, amount_refunded: total }, {
      id,
      previous: { amount_refunded: before },
    });
  for (let time = 0; time < 2; time++) {
    assert.equal((await refund(300, 0, "evt_r1")).body.outcome, "debited");
  }
  assert.equal((await world.balance("ada")).balance, "7");
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "6" } });
  await refund(700, 300, "evt_r2");
  const [entry] = await world.activities("ada");
  assert.deepEqual([entry?.kind, entry?.amount, entry?.shortfall], ["refund", "1", "3"]);
  assert.equal((await world.balance("ada")).balance, "0");
  const disputed = await tell(world, "charge.dispute.created", charge);
  assert.deepEqual([disputed.status, disputed.body.outcome], [200, "debited"], "all that is left");
  assert.equal((await world.activities("ada"))[0]?.shortfall, "3");
  const other = { ...charge, id: "dp_2" };
  assert.equal((await tell(world, "charge.dispute.created", other)).body.outcome, "ignored");
  const unknown = { payment_intent: "pi_unknown", amount: 5 };
  assert.equal((await tell(world, "charge.dispute.created", unknown)).body.outcome, "kept");
});

Deno.test("stripe: a dispute after a partial refund takes the rest, and may be reversed", async () => {
  using world = await payingWorld();
  const session = paid(await checkout(world));
  await tell(world, "checkout.session.completed", session);
  const charge = { payment_intent: session.payment_intent, amount: 1000 };
  await tell(world, "charge.refunded", { ...charge, amount_refunded: 300 });
  for (let time = 0; time < 2; time++) {
    const disputed = await tell(world, "charge.dispute.created", charge, { id: "evt_disputed" });
    assert.deepEqual([disputed.status, disputed.body.outcome], [200, "debited"]);
  }
  const taken = (await world.activities("ada")).map(({ amount }) => amount);
  assert.deepEqual(taken, ["7", "3", "10"]);
});

Deno.test("stripe: a reinstatement after its user was erased is recorded, and brings no one back", async () => {
  using world = await payingWorld({ trialCredits: "1" });
  const session = paid(await checkout(world));
  const refunded = { payment_intent: session.payment_intent, amount_refunded: 300 };
  const tellAll = async () => [
    await tell(world, "checkout.session.completed", session, { id: "evt_paid" }),
    await tell(world, "charge.refunded", refunded, { id: "evt_back" }),
  ];
  await tellAll();
  assert.equal((await forgetWholly(world, { forfeit: true }, "ada")).status, "done");
  const again = (await tellAll()).map(({ status, body }) => [status, body.outcome]);
  assert.deepEqual(again, [[200, "booked"], [200, "debited"]]);
  assert.deepEqual(await rowsNaming(world, '"ada"'), []);
});

Deno.test("stripe: a refund reported before its payment is taken back with it", async () => {
  using world = await payingWorld();
  const session = paid(await checkout(world));
  const charge = { payment_intent: session.payment_intent, amount_refunded: 300 };
  for (let time = 0; time < 2; time++) {
    const early = await tell(world, "charge.refunded", charge, { id: "evt_early" });
    assert.deepEqual([early.status, early.body.outcome], [200, "kept"]);
  }
  const completed = "checkout.session.completed";
  assert.equal((await tell(world, completed, session)).body.outcome, "booked");
  assert.equal((await world.balance("ada")).balance, "7");
  const late = await tell(world, "charge.refunded", charge, { id: "evt_early" });
  assert.equal(late.body.outcome, "debited", "the same event once more");
  await tell(world, completed, session);
  assert.equal((await world.balance("ada")).balance, "7");
  assert.deepEqual(await keysUnder(world, allStripeReversalsPrefix), []);
});

Deno.test("stripe: a refund of a payment that never comes is stored for a month", async () => {
  using world = await payingWorld();
  await tell(world, "charge.refunded", { payment_intent: "pi_other", amount_refunded: 5 });
  const day = 24 * 60 * 60 * 1000;
  await world.clock.advance(29 * day);
  await world.app.sweep();
  assert.equal((await keysUnder(world, allStripeReversalsPrefix)).length, 1);
  await world.clock.advance(2 * day);
  await world.app.sweep();
  assert.deepEqual(await keysUnder(world, allStripeReversalsPrefix), []);
});

const oddObjects: [label: string, object: unknown][] = [
  ["nothing", null],
  ["a text", "cs_test_1"],
  ["an empty object", {}],
  ["an amount that is no whole number", { id: "cs_1", payment_status: "paid", amount_total: 1.5 }],
  ["metadata that are no texts", { id: "cs_1", payment_status: "paid", metadata: { a: 1 } }],
  ["a payment that is a number", { payment_intent: 1, amount: 5, amount_refunded: 5 }],
  ["amounts that are texts", { payment_intent: "pi_1", amount: "5", amount_refunded: "5" }],
];
for (const [label, object] of oddObjects) {
  Deno.test(`stripe: ${label} in a signed event is a clear 400, not a silent success`, async () => {
    using world = await payingWorld();
    for (
      const type of [
        "checkout.session.completed",
        "charge.refunded",
        "charge.dispute.created",
      ]
    ) {
      const { status, body } = await tell(world, type, object as Record<string, unknown>);
      assert.equal(status, 400, `${type}: ${JSON.stringify(body)}`);
      assert.equal(body.error.code, "unexpected_event");
      assert.match(body.error.message, new RegExp(type));
    }
    assert.equal((await tell(world, "invoice.paid", object as Session)).body.outcome, "ignored");
  });
}

Deno.test("stripe: a paid checkout is recorded even if the project has been archived since", async () => {
  using world = await payingWorld();
  const session = paid(await checkout(world));
  await world.json(`/v1/admin/projects/${world.projectId}/archive`, {
    method: "POST",
    key: adminKey,
  });
  await tell(world, "checkout.session.completed", session);
  assert.equal((await world.balance("ada")).balance, "10");
  const path = await pagePath(world);
  const page = await (await world.call(path, { key: null })).text();
  assert.match(page, /is closed, so no money can be added/);
  assert.doesNotMatch(page, /<form/);
  const refused = await choose(world, path, "5", "form_0");
  assert.equal(refused.status, 405);
  assert.match(await refused.text(), /This app is closed/);
});

Deno.test("stripe: when it does not respond, the person is told, and nothing is created", async () => {
  using world = await payingWorld();
  world.stripe.failsWith = 500;
  const response = await choose(world, await pagePath(world), "5");
  assert.equal(response.status, 502);
  assert.match(await response.text(), /payment service did not answer/);
});

Deno.test("stripe: a person who goes back and chooses another amount pays that one, each once", async () => {
  using world = await payingWorld();
  const path = await pagePath(world);
  const formId = formIdOf(await (await world.call(path, { key: null })).text());
  const places: (string | null)[] = [];
  for (const amount of ["5", "10", "5", "10.00"]) {
    const response = await choose(world, path, amount, formId);
    assert.equal(response.status, 303, await response.text());
    places.push(response.headers.get("location"));
  }
  assert.deepEqual(places.slice(2), places.slice(0, 2));
  const sessions = [...world.stripe.sessions.values()];
  assert.deepEqual(sessions.map(({ amount_total }) => amount_total), [500, 1000]);
  for (const session of [...sessions, ...sessions]) {
    await tell(world, "checkout.session.completed", paid(session));
  }
  assert.equal((await world.balance("ada")).balance, "15");
});

Deno.test("stripe: a refused amount is reported to the person, Stripe's message to the log", async () => {
  using world = await payingWorld();
  world.stripe.refusesWith = "Amount must convert to at least 50 cents.";
  const response = await choose(world, await pagePath(world), "5");
  assert.equal(response.status, 400);
  const html = await response.text();
  assert.match(html, /This amount cannot be paid here/);
  assert.doesNotMatch(html, /50 cents/);
  const line = world.logged.find(({ event }) => event === "checkout_failed");
  assert.match(String(line?.cause), /at least 50 cents/);
  assert.equal(line?.project, world.projectId);
});

Deno.test("stripe: its keys are encrypted, and never shown", async () => {
  using world = await payingWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  const { body } = await world.json(path, { key: adminKey });
  assert.deepEqual(body.project.stripe, { secretKey: { set: true }, webhookSecret: { set: true } });
  const rows = await world.deps.kv.list({ prefix: [], limit: 500 });
  const stored = rows.map(({ value }) => new TextDecoder().decode(value ?? undefined)).join();
  assert.doesNotMatch(stored, /of_the_owner/);
  const other = await world.makeProject();
  const foreign = await world.json(`/v1/stripe/${other.projectId}`, { key: null, raw: "{}" });
  assert.equal(foreign.status, 400);
});

Deno.test("stripe: amounts are sent in the currency's smallest unit, exactly or not at all", () => {
  const table: [amount: bigint, currency: string, units: number | null][] = [
    [10n * unit, "usd", 1000],
    [unit / 100n, "usd", 1],
    [unit / 1000n, "usd", null],
    [500n * unit, "jpy", 500],
    [unit / 2n, "jpy", null],
    [unit / 100n, "kwd", 10],
    [unit / 1000n, "kwd", null],
    [5n * unit, "ugx", 500],
    [unit / 100n, "ugx", null],
  ];
  for (const [amount, currency, units] of table) {
    assert.equal(toStripeUnits(toAmount(amount), currency), units, `${amount} ${currency}`);
    if (units !== null) assert.equal(fromStripeUnits(units, currency), amount);
  }
});

Deno.test("stripe: the page may redirect to a domain of the owner's at Stripe", async () => {
  using world = await payingWorld();
  const response = await world.call(await pagePath(world), { key: null });
  await response.text();
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /form-action 'self' https:;/);
});

Deno.test("stripe: an amount with too many decimals for the currency opens no checkout", async () => {
  using world = await payingWorld();
  assert.equal((await choose(world, await pagePath(world), "10.005")).status, 400);
  assert.equal(world.stripe.sessions.size, 0);
});
