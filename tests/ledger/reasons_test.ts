import assert from "node:assert/strict";
import { type Entry, entryReason } from "../../src/ledger/entry.ts";
import { chatBody, chatPath, storedEntries } from "../support/books.ts";
import { completion, usage } from "../support/upstream.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const moneyPath = { deposit: "/v1/user/balance/deposit", charge: "/v1/user/charge" };

/** A user's activities, oldest first, as kind, reason and amount. */
async function reasonsOf(world: World, user: string): Promise<string[]> {
  const { body } = await world.json(`/v1/user/activities?user=${user}`, { method: "GET" });
  return body.activities.reverse().map(({ kind, reason, delta }: Body) =>
    `${kind} ${reason} ${delta}`
  );
}

Deno.test("reasons: each entry states why, by its kind or as its caller says", async () => {
  using world = await createWorld({ project: { trialCredits: "1" } });
  world.upstream.reply(() => Promise.resolve(completion({ usage: usage(1000, 500) })));
  const move = async (verb: "deposit" | "charge", body: Body) =>
    (await world.json(moneyPath[verb], { body: { user: "ada", ...body } })).body;
  const paid = await move("deposit", { amount: "5" });
  await move("deposit", { amount: "2", reason: "goodwill" });
  await world.json(chatPath, { body: chatBody("ada") });
  const charged = await move("charge", { amount: "1" });
  await move("charge", { amount: "0.5", reason: "correction" });
  for (const { activityId } of [charged, paid]) {
    await world.json("/v1/user/refund", { body: { activityId, amount: "0.25" } });
  }
  assert.deepEqual(await reasonsOf(world, "ada"), [
    "trial trial 1",
    "deposit payment 5",
    "deposit goodwill 2",
    "usage usage -0.002",
    "charge charge -1",
    "charge correction -0.5",
    "refund refund 0.25",
    "refund reversal -0.25",
  ]);
});

Deno.test("reasons: the default may be named, and another reason is another request", async () => {
  using world = await createWorld();
  const deposit = (more: Body) =>
    world.json(moneyPath.deposit, {
      body: { user: "ada", amount: "5", ...more },
      headers: { "idempotency-key": "k-1" },
    });
  assert.equal((await deposit({})).status, 200);
  assert.equal((await deposit({ reason: "payment" })).status, 200);
  assert.equal((await deposit({ reason: "goodwill" })).body.error.code, "idempotency_key_reused");
  for (const reason of ["usage", "refund", "", null]) {
    const { status, body } = await deposit({ reason });
    assert.equal(status, 400, String(reason));
    assert.equal(body.error.param, "reason");
  }
  assert.equal((await world.balance("ada")).balance, "5");
});

Deno.test("reasons: an opening balance grants no trial, and is announced only on request", async () => {
  using world = await createWorld({ project: { trialCredits: "1" } });
  await subscribe(world, { events: ["balance.*"] });
  const open = (user: string, more: Body = {}) =>
    world.json(moneyPath.deposit, { body: { user, amount: "5", reason: "opening", ...more } });
  assert.equal((await open("ada")).body.balance, "5");
  await open("bob", { sendEvents: true });
  await deliver(world);
  const told = world.subscriber.received.map(({ body }) => body.event.data);
  assert.deepEqual(told.map(({ externalUserId, reason }) => [externalUserId, reason]), [[
    "bob",
    "opening",
  ]]);
});

Deno.test("reasons: each entry tells who caused it, and never a secret", async () => {
  using world = await createWorld({ project: { trialCredits: "1" } });
  world.upstream.reply(() => Promise.resolve(completion({ usage: usage(10, 5) })));
  await world.deposit("ada", "5");
  await world.json(chatPath, { body: chatBody("ada") });
  const path = `/v1/admin/projects/${world.projectId}/users/ada/charge`;
  await world.json(path, { key: adminKey, body: { amount: "1" } });
  const entries = await storedEntries(world, "ada");
  const [key] = entries.filter(({ actor }) => actor?.type === "key").map(({ actor }) => actor?.id);
  assert.match(String(key), /^key_/);
  assert.deepEqual(entries.map(({ kind, actor }) => [kind, actor]), [
    ["trial", { type: "system", id: "system" }],
    ["deposit", { type: "key", id: key }],
    ["usage", { type: "key", id: key }],
    ["charge", { type: "operator", id: "operator" }],
  ]);
});

Deno.test("reasons: entries of version 0.9 read as their kind, direction and Stripe's event say", () => {
  const old = (more: Partial<Entry>) =>
    entryReason({
      ...{ seq: 1, prev: null, kind: "deposit", user: "ada", delta: "1", balanceAfter: "1" },
      ...{ heldAfter: "0", shortfall: "0", createdAt: 0, idempotencyKey: null, metadata: null },
      ...{ usage: null, refundedActivityId: null, ...more },
    });
  const of = "act_1";
  const metadata = { reason: "charge.dispute.created" };
  assert.equal(old({}), "payment");
  assert.equal(old({ refundedActivityId: of }), "reversal");
  assert.equal(old({ refundedActivityId: of, metadata }), "dispute_won");
  assert.equal(old({ kind: "refund", delta: "1" }), "refund");
  assert.equal(old({ kind: "refund", delta: "-1" }), "reversal");
  assert.equal(old({ kind: "refund", delta: "0" }), "reversal");
  assert.equal(old({ kind: "refund", delta: "-1", metadata }), "dispute");
  assert.equal(old({ kind: "expired", delta: "-1" }), "usage");
});
