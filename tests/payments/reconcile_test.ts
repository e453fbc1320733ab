import assert from "node:assert/strict";
import { ownerStripe, paidWorld } from "../support/payments.ts";
import { verify } from "../support/verify.ts";
import { allow, Device, openSession, sharedWorld } from "../support/wallets.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const since = "2026-01-01T00:00:00Z";

/** Reconciles one account, all pages of it. */
async function reconcile(world: World, path = `/v1/admin/projects/${world.projectId}`) {
  const pages: Body[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const body: Body = { since, ...(cursor ? { cursor } : {}) };
    const answer: { status: number; body: Body } = await world.json(`${path}/stripe/reconcile`, {
      key: adminKey,
      body,
    });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    pages.push(answer.body);
    cursor = answer.body.nextCursor;
  }
  const sum = (name: string) => pages.reduce((total, page) => total + page[name], 0);
  return {
    pages: pages.length,
    counts: ["payments", "booked", "bookedBefore", "changes"].map(sum),
    unbooked: pages.flatMap(({ unbooked }) => unbooked),
  };
}

const payAll = ({ stripe: { sessions } }: World) => {
  for (const session of sessions.values()) session.payment_status = "paid";
};

Deno.test("reconcile: paid sessions that were missed are booked, each once, over all pages", async () => {
  const { world, tell } = await paidWorld();
  using _ = world;
  for (let n = 0; n < 4; n++) await openSession(world, { user: `user-${n}`, amount: "5" });
  payAll(world);
  await openSession(world, { user: "unpaid", amount: "5" });
  await tell();
  world.stripe.pageSize = 2;
  const first = await reconcile(world);
  assert.deepEqual(first, { pages: 4, counts: [5, 4, 1, 0], unbooked: [] });
  assert.deepEqual((await reconcile(world)).counts, [5, 0, 5, 0]);
  for (let n = 0; n < 4; n++) assert.equal((await world.balance(`user-${n}`)).balance, "5");
  assert.equal((await world.balance("ada")).balance, "10");
  assert.equal((await world.balance("unpaid")).balance, "0");
  assert.equal((await tell()).body.outcome, "booked", "and a late event changes nothing");
  assert.equal((await world.balance("ada")).balance, "10");
  const [asked] = world.stripe.lists;
  assert.deepEqual([asked?.get("created[gte]"), asked?.get("status")], ["1767225600", "complete"]);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("reconcile: refunds and disputes that were missed are taken back, each once", async () => {
  const { world, session } = await paidWorld();
  using _ = world;
  payAll(world);
  const { payment_intent } = session;
  const data = { object: { payment_intent, amount_refunded: 300, currency: "usd" } };
  world.stripe.events.push({ id: "evt_back", type: "charge.refunded", data });
  const other = { object: { ...data.object, currency: "eur" } };
  world.stripe.events.push({ id: "evt_odd", type: "charge.refunded", data: other });
  assert.deepEqual((await reconcile(world)).counts, [1, 1, 0, 1]);
  assert.deepEqual((await reconcile(world)).counts, [1, 0, 1, 1]);
  assert.equal((await world.balance("ada")).balance, "7");
});

Deno.test("reconcile: what cannot be booked is named with its reason, and stops nothing", async () => {
  const { world, session } = await paidWorld();
  using _ = world;
  await openSession(world, { user: "bob", amount: "5" });
  payAll(world);
  const odd = world.stripe.sessions.get(session.id) ?? assert.fail();
  odd.amount_total = 1;
  const { counts, unbooked } = await reconcile(world);
  assert.deepEqual(counts, [2, 1, 0, 0]);
  assert.deepEqual(unbooked.map((one: Body) => one.session), [session.id]);
  assert.match(unbooked[0].reason, /amount or currency/);
  const { body } = await world.json(`/v1/admin/projects/${world.projectId}/audit`, {
    key: adminKey,
  });
  assert.partialDeepStrictEqual(body.actions[0], {
    action: "stripe.reconciled",
    detail: { booked: 1 },
  });
});

Deno.test("reconcile: payments into wallets are those of the server's own account", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  await openSession(world);
  payAll(world);
  const { status, body } = await world.json(
    `/v1/admin/projects/${world.projectId}/stripe/reconcile`,
    { key: adminKey, body: { since } },
  );
  assert.deepEqual([status, body.error.code], [400, "mode_conflict"]);
  assert.deepEqual((await reconcile(world, "/v1/admin")).counts, [1, 1, 0, 0]);
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("reconcile: without an account, a time, a key or Stripe it is a clear error", async () => {
  using world = await createWorld({ project: { stripe: ownerStripe } });
  const poor = await world.makeProject();
  const ask = async (projectId: string, body: Body, key = adminKey) => {
    const path = `/v1/admin/projects/${projectId}/stripe/reconcile`;
    return (await world.json(path, { key, body })).status;
  };
  assert.equal(await ask(poor.projectId, { since }), 404);
  assert.equal(await ask(world.projectId, { since }, world.apiKey), 401);
  for (const body of [{}, { since: "yesterday" }, { since, cursor: "x" }, { since, cursor: "" }]) {
    assert.equal(await ask(world.projectId, body), 400, JSON.stringify(body));
  }
  assert.equal(
    (await world.json("/v1/admin/stripe/reconcile", {
      key: adminKey,
      body: { since },
    })).status,
    404,
  );
  world.stripe.failsWith = 401;
  assert.equal(await ask(world.projectId, { since }), 502);
});
