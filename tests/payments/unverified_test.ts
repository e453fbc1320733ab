import assert from "node:assert/strict";
import Stripe from "stripe";
import { allUnbookedPaymentsPrefix, allUnverifiedEventsPrefix } from "../../src/store/keys.ts";
import { signedIn, textOf, Visitor } from "../support/console.ts";
import { ownerStripe, type PaidWorld, paidWorld, unbookedLog } from "../support/payments.ts";
import { metricsToken, scrape } from "../support/prometheus.ts";
import { keysUnder } from "../support/verify.ts";
import { tellServer } from "../support/wallets.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const minute = 60_000;
const type = "checkout.session.completed";
const unknownProject = "pw_01KDVDNA0047C4FEZDQK8YZG99";

interface Post {
  projectId?: string;
  raw?: string;
  header?: string | null;
}

/** Posts a body as anyone can, with a paid session in it where no other is given. */
async function post(world: World, { projectId = world.projectId, raw, header }: Post) {
  const metadata = { farebox_project: world.projectId, farebox_user: "ada", farebox_units: "1000" };
  const object = { id: "cs_1", amount_total: 1000, currency: "usd", payment_status: "paid" };
  const event = { id: "evt_1", type, data: { object: { ...object, metadata } } };
  const headers = header ? { "stripe-signature": header } : {};
  const options = { key: null, raw: raw ?? JSON.stringify(event), headers };
  const { status, body } = await world.json(`/v1/stripe/${projectId}`, options);
  return [status, body.error.code, body.error.message];
}

const falseHeader = ({ clock }: World) =>
  `t=${Math.floor(clock.now() / 1000)},v1=${"0123456789abcdef".repeat(4)}`;
const warnings = ({ logged }: World) =>
  logged.filter(({ event }) => event === "stripe_events_unverified");
const unverifiedRows = (world: World) => keysUnder(world, allUnverifiedEventsPrefix);
const payments = async (world: World) =>
  textOf((await (await signedIn(world)).get("payments")).html);

async function alerts(world: World): Promise<Body[]> {
  await world.clock.advance(minute + 1);
  await world.app.sweep();
  return (await operate(world, "/alerts", { method: "GET" })).body.alerts;
}

const openWorld = () =>
  paidWorld({
    env: { METRICS_TOKEN: metricsToken },
    project: { alerts: { paymentNotBooked: true } },
  });

const forgeries: [what: string, reason: string, post: (world: World) => Post][] = [
  ["no signature", "no_signature", () => ({ header: null })],
  ["a header that is none of Stripe's", "no_signature", () => ({ header: "v1=abc" })],
  ["a signature without a time", "no_signature", () => ({ header: `v1=${"a".repeat(64)}` })],
  ["a false signature", "invalid_signature", (world) => ({ header: falseHeader(world) })],
  [
    "a false signature of what is no JSON",
    "invalid_signature",
    (world) => ({ raw: "{", header: falseHeader(world) }),
  ],
  [
    "a false signature of another type",
    "invalid_signature",
    (world) => ({ raw: '{"id":"evt_1","type":"invoice.paid"}', header: falseHeader(world) }),
  ],
  [
    "a project that does not exist",
    "unknown_project",
    (world) => ({ projectId: unknownProject, header: falseHeader(world) }),
  ],
  [
    "an id that none has",
    "unknown_project",
    (world) => ({ projectId: "x".repeat(300), header: falseHeader(world) }),
  ],
];
for (const [what, reason, forged] of forgeries) {
  Deno.test(`unverified: 600 posts with ${what} are one warning a minute, and wake nobody`, async () => {
    const { world } = await openWorld();
    using _ = world;
    const answers = new Set<string>();
    for (let n = 0; n < 600; n++) answers.add(JSON.stringify(await post(world, forged(world))));
    assert.equal(answers.size, 1);
    const same = await post(world, { header: falseHeader(world) });
    assert.deepEqual(JSON.parse([...answers][0] ?? ""), same, "no answer tells more than another");
    assert.deepEqual(same.slice(0, 2), [400, "invalid_signature"]);
    assert.equal(warnings(world).length, 1);
    await world.clock.advance(minute);
    const lines = warnings(world);
    assert.equal(lines.length, 2);
    const counted = lines.reduce((sum, line) => sum + Number(line[reason] ?? 0), 0);
    assert.equal(counted, reason === "invalid_signature" ? 601 : 600);
    assert.deepEqual(world.logged.filter(({ level }) => level === "error"), []);
    assert.deepEqual(await keysUnder(world, allUnbookedPaymentsPrefix), []);
    assert.ok((await unverifiedRows(world)).length <= 1);
    assert.deepEqual(await alerts(world), []);
    const { series } = await scrape(world);
    for (const [name, value] of series) {
      if (name.startsWith("farebox_payments_not_booked_total")) assert.equal(value, 0, name);
    }
    const counter = `farebox_stripe_events_unverified_total{reason="${reason}"}`;
    assert.equal(series.get(counter), reason === "invalid_signature" ? 601 : 600);
  });
}

Deno.test("unverified: an old event with a right signature is refused, and says which it is", async () => {
  const { world, session } = await openWorld();
  using _ = world;
  const payload = JSON.stringify({ id: "evt_1", type, data: { object: session } });
  const header = await new Stripe("sk_test").webhooks.generateTestHeaderStringAsync({
    payload,
    secret: ownerStripe.webhookSecret,
    timestamp: Math.floor(world.clock.now() / 1000) - 3_600,
    cryptoProvider: Stripe.createSubtleCryptoProvider(),
  });
  const [status, code] = await post(world, { raw: payload, header });
  assert.deepEqual([status, code], [400, "invalid_signature"]);
  assert.equal(warnings(world)[0]?.outdated_signature, 1);
  assert.match(await payments(world), /is this server’s clock right/);
});

Deno.test("unverified: an event that is too large is refused alike for every project", async () => {
  const { world } = await openWorld();
  using _ = world;
  const large = { raw: "x".repeat(600_000), header: falseHeader(world) };
  const known = await post(world, large);
  assert.equal(known[0], 413);
  assert.deepEqual(await post(world, { ...large, projectId: unknownProject }), known);
  assert.deepEqual(unbookedLog(world), []);
});

Deno.test("unverified: a signed report keeps its place, whatever strangers send", async () => {
  const { world, tell, session } = await openWorld();
  using _ = world;
  for (let n = 0; n < 100; n++) await post(world, { header: falseHeader(world) });
  await tell({ amount_total: 999 });
  for (let n = 0; n < 100; n++) await post(world, { header: falseHeader(world) });
  assert.equal(unbookedLog(world).length, 1);
  const [alert, ...more] = await alerts(world);
  assert.deepEqual(more, []);
  assert.equal(alert?.checkoutSessionId, session.id);
  assert.match(await payments(world), new RegExp(`${session.id} .* other_amount`));
});

Deno.test("unverified: a note in the console goes with the next event that is signed", async () => {
  const { world, tell } = await openWorld();
  using _ = world;
  await post(world, { header: falseHeader(world) });
  const page = await payments(world);
  assert.match(page, /1 event in Stripe’s name could not be verified.*Anyone can send such events/);
  assert.doesNotMatch(page, /not booked|is wrong/);
  assert.equal((await tell()).body.outcome, "booked");
  assert.doesNotMatch(await payments(world), /could not be verified/);
  assert.deepEqual(await unverifiedRows(world), []);
});

/** Lets sweeps run for some minutes. */
async function sweepFor(world: World, minutes: number): Promise<void> {
  for (let n = 0; n < minutes; n++) {
    await world.clock.advance(minute + 1);
    await world.app.sweep();
  }
}

async function payAndTellInVain({ world, session, tell }: PaidWorld): Promise<void> {
  for (const open of world.stripe.sessions.values()) open.payment_status = "paid";
  assert.equal((await tell({}, "whsec_of_before")).status, 400);
  assert.ok(session.id);
}

Deno.test("unverified: with a wrong secret a payment is booked by asking Stripe, and the owner learns why", async () => {
  const paid = await openWorld();
  using world = paid.world;
  await payAndTellInVain(paid);
  assert.equal((await world.balance("ada")).balance, "0");
  await sweepFor(world, 4);
  assert.equal((await world.balance("ada")).balance, "10");
  const [alert] = await alerts(world);
  assert.equal(alert?.rule, "paymentNotBooked");
  assert.match(alert?.summary, /signing secret/);
  assert.match(await payments(world), /The signing secret of Stripe’s webhook is wrong/);
  await paid.tell({ id: "cs_other", payment_intent: "pi_other", metadata: {} });
  assert.notEqual((await alerts(world))[0]?.resolvedAt, null, "a signed event ends it");
});

Deno.test("unverified: what is found at Stripe of another server's projects is not reported", async () => {
  const paid = await openWorld();
  using world = paid.world;
  const [session] = world.stripe.sessions.values();
  const metadata = { ...session?.metadata, farebox_project: unknownProject };
  const object = { ...session, id: "cs_foreign", payment_status: "paid", metadata };
  world.stripe.sessions.set("cs_foreign", object);
  await post(world, { header: falseHeader(world) });
  await sweepFor(world, 2);
  assert.equal(world.stripe.lists.length, 1);
  assert.deepEqual(unbookedLog(world), []);
});

Deno.test("unverified: strangers make Stripe be asked once in ten minutes, and prove nothing", async () => {
  const { world } = await openWorld();
  using _ = world;
  for (let n = 0; n < 30; n++) {
    await post(world, { header: falseHeader(world) });
    await sweepFor(world, 1);
  }
  assert.equal(world.stripe.lists.length, 3);
  assert.deepEqual(await alerts(world), []);
  world.stripe.failsWith = 500;
  await post(world, { header: falseHeader(world) });
  await sweepFor(world, 11);
  assert.ok(
    world.logged.some(({ event, level }) => event === "stripe_not_asked" && level === "warn"),
  );
  await sweepFor(world, 1);
  await world.clock.advance(8 * 24 * 60 * minute);
  await world.app.sweep();
  assert.deepEqual(await unverifiedRows(world), []);
});

Deno.test("unverified: a project whose keys were removed, and a server without Stripe, say so", async () => {
  const { world, tell } = await openWorld();
  using _ = world;
  const changed = { method: "PATCH", key: adminKey, body: { stripe: null } };
  await world.json(`/v1/admin/projects/${world.projectId}`, changed);
  assert.equal((await tell()).status, 400);
  assert.match(await payments(world), /Stripe is not connected here/);
  assert.deepEqual(unbookedLog(world), []);
  using bare = await createWorld();
  assert.equal((await tellServer(bare, { id: "evt_1", type, data: {} })).status, 404);
  const operator = new Visitor(bare);
  await operator.signIn(adminKey);
  const projects = textOf((await operator.get("/console/projects")).html);
  assert.match(projects, /Stripe is not connected here/);
});
