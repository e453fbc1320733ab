import assert from "node:assert/strict";
import { accountKey } from "../../src/store/keys.ts";
import {
  type Account,
  decodeAccount,
  emptyAccount,
  encodeAccount,
  type Hold,
} from "../../src/ledger/account.ts";
import { takeEnded } from "../../src/ledger/account_tx.ts";
import { type Amount, fromDecimal, toAmount, zero } from "../../src/base/money.ts";
import { chatBody, chatPath, storedAccount, storedRows } from "../support/books.ts";
import { chat, until } from "../support/chat.ts";
import { forgetWholly } from "../support/forget.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { completion, usage } from "../support/upstream.ts";
import { put, verify } from "../support/verify.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { createWorld, type World } from "../support/world.ts";

// Reasons for a refusal: caps, limits, holds of running calls and of dead processes.

/** Holds 1.096 of the balance, for a prompt of this many bytes and 100 tokens. */
const dear = { models: { "test-model": { input: "1000", output: "10000", maxOutputTokens: 100 } } };

/** A response that runs until it is released, and has used this many tokens by then. */
function running(world: World, outputTokens: number) {
  const gate = createGate();
  world.upstream.once(async () => {
    await gate.opened;
    return completion({ usage: usage(10, outputTokens) });
  });
  const answer = world.json(chatPath, { body: chatBody("ada") });
  const held = async () => {
    await world.until(async () => (await world.balance("ada")).held !== "0");
  };
  return { answer, held, gate };
}

/** The sum of its holds, which is written with them. */
function heldBy({ holds }: Account) {
  return holds.reduce((sum, { amount }) => toAmount(sum + amount), toAmount(0n));
}

Deno.test("refusal: a cap lowered during a call does not affect what was held for it", async () => {
  using world = await sharedWorld({ pricing: dear });
  const device = new Device(world);
  await allow(device, { cap: "10" });
  await pay(world, { amount: "50" });
  const { answer, held, gate } = running(world, 90);
  await held();
  const cap = { action: "cap", projectId: world.projectId, user: "ada", cap: "0.000000001" };
  assert.equal((await device.post("/wallet", cap)).status, 303);
  gate.open();
  assert.equal((await answer).body.usage.cost_exact, "0.91");
  const [entry] = await world.activities("ada");
  assert.deepEqual([entry?.amount, entry?.shortfall], ["0.91", "0"]);
  assert.equal((await charge(world, "0.1")).success, false, "and the cap holds for what is new");
});

for (
  const [what, settings, money] of [
    ["the balance", {}, "1.1"],
    ["a day's limit", { limits: { user: { spendPerDay: "1.1" } } }, "100"],
  ] as const
) {
  Deno.test(`refusal: if only a running call prevents ${what}, the next one waits`, async () => {
    using world = await createWorld({ project: { pricing: dear, ...settings } });
    await world.deposit("ada", money);
    const { answer, held, gate } = running(world, 2);
    await held();
    world.upstream.reply(() => completion({ usage: usage(10, 2) }));
    const next = world.json(chatPath, { body: chatBody("ada") });
    await world.clock.advance(200);
    gate.open();
    assert.equal((await answer).body.usage.cost_exact, "0.03");
    assert.equal((await until(world, next, 50)).body.usage.cost_exact, "0.03");
  });
}

Deno.test("refusal: near a limit, with nothing running, no one waits", async () => {
  const limits = { user: { spendPerDay: "0.5" } };
  using world = await createWorld({ project: { pricing: dear, limits } });
  await world.deposit("ada", "100");
  world.upstream.once(() => completion({ usage: usage(10, 2) }));
  // The clock does not move: a call that waited would wait forever.
  const { body } = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(body.usage.cost_exact, "0.03");
});

Deno.test("refusal: beyond a cap the reason is the authorization, even while little is held", async () => {
  using world = await sharedWorld();
  await allow(new Device(world), { cap: "3" });
  await pay(world, { amount: "50" });
  assert.equal((await charge(world, "2.9")).success, true);
  const alone = await charge(world, "1");
  const { answer, held, gate } = running(world, 2);
  await held();
  const beside = await charge(world, "1");
  assert.deepEqual([alone.reason, beside.reason], Array(2).fill("authorization_required"));
  gate.open();
  await answer;
});

/** A hold of 1 whose process died before it ever renewed it. */
function deadHold(world: World, amount: Amount, connectionId: string | null): Hold {
  const expiresAt = world.clock.now() - 1;
  const holder = null;
  return {
    id: world.deps.id("req"),
    amount,
    used: zero,
    expiresAt,
    connectionId,
    budgets: [],
    holder,
  };
}

Deno.test("refusal: dead holds prevent nothing, however many there are", async () => {
  using world = await createWorld();
  await world.deposit("ada", "40");
  const account = await storedAccount(world, "ada");
  const one = fromDecimal("1");
  account.holds = Array.from({ length: 40 }, () => deadHold(world, one, null));
  account.held = heldBy(account);
  const key = accountKey(world.projectId, "ada");
  const sets = [{ key, value: encodeAccount(account) }];
  await world.deps.kv.atomic({ checks: [], sets, deletes: [] });
  assert.equal((await world.balance("ada")).available, "40");
  const body = { user: "ada", amount: "30" };
  assert.equal((await world.json("/v1/user/charge", { body })).body.success, true);
});

Deno.test("refusal: another connection's dead hold prevents nothing in a wallet", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  for (const user of ["ada", "bob"]) await allow(device, { user, cap: "100" });
  await pay(world, { amount: "10" });
  const rows = await storedRows(world);
  const bobs = rows.find(({ key }) => key.join("/") === `authorization/${world.projectId}/bob`);
  const { connectionId } = JSON.parse(new TextDecoder().decode(bobs?.value ?? undefined));
  const wallet = rows.find(({ key }) => key[0] === "account" && String(key[1]).startsWith("per_"));
  assert.ok(wallet);
  const account = decodeAccount(wallet.value);
  account.holds = [deadHold(world, fromDecimal("8"), connectionId)];
  account.held = heldBy(account);
  const sets = [{ key: wallet.key, value: encodeAccount(account) }];
  await world.deps.kv.atomic({ checks: [], sets, deletes: [] });
  using second = await createWorld({ shareWith: world });
  assert.equal((await second.balance("ada")).available, "10");
  assert.equal((await charge(second, "5")).success, true);
});

Deno.test("refusal: a refund after a complete erasure belongs to no one any more", async () => {
  const store = createScriptedStore();
  const project = { trialCredits: "2" };
  using world = await createWorld({ project, wrapKv: store.wrap });
  const user = "ada.l@example.com";
  await world.deposit(user, "10");
  const { activityId } = await charge(world, "3", { user });
  const [reached, gate] = [createGate(), createGate()];
  let isHeld = false;
  store.get = async (key, real) => {
    if (!isHeld && key[0] === "refunded") {
      isHeld = true;
      reached.open();
      await gate.opened;
    }
    return await real(key);
  };
  using second = await createWorld({ shareWith: world });
  const refund = world.json("/v1/user/refund", { body: { activityId } });
  await reached.opened;
  await forgetWholly(second, { forfeit: true }, user);
  gate.open();
  assert.equal((await refund).status, 404);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("refusal: dead holds do not count as running calls toward the limit", async () => {
  using world = await createWorld({ project: { limits: { user: { concurrent: 1 } } } });
  await world.deposit("ada", "40");
  const account = await storedAccount(world, "ada");
  account.holds = Array.from({ length: 40 }, () => deadHold(world, fromDecimal("1"), null));
  account.held = heldBy(account);
  await put(world, accountKey(world.projectId, "ada"), encodeAccount(account));
  assert.equal((await world.json(chatPath, { body: chatBody("ada") })).status, 200);
});

Deno.test("refusal: expired holds end, and what the others hold stays held", () => {
  const now = 1_000;
  const hold = (id: string, amount: string, expiresAt: number): Hold => (
    {
      id,
      amount: fromDecimal(amount),
      expiresAt,
      used: zero,
      connectionId: null,
      budgets: [],
      holder: null,
    }
  );
  const holds = [hold("one", "1", now + 1), hold("dead", "2", now), hold("other", "4", now + 1)];
  const account = { ...emptyAccount(), balance: fromDecimal("10"), holds, held: fromDecimal("7") };
  assert.deepEqual(takeEnded(account, holds, (hold) => hold.expiresAt <= now).map(({ id }) => id), [
    "dead",
  ]);
  assert.deepEqual(account.holds.map(({ id }) => id), ["one", "other"]);
  assert.equal(account.held, fromDecimal("5"));
});

/**
 * A response that runs until the gate is opened, and another call for which it leaves too little.
 */
async function squeezed(world: World) {
  await world.deposit("ada", "0.0024");
  const gate = createGate();
  world.upstream.once(async () => {
    await gate.opened;
    return completion();
  });
  const first = chat(world, { max_tokens: 1_000 });
  await world.until(() => world.upstream.calls.length >= 1);
  return { first, second: chat(world, { max_tokens: 1_000 }), gate };
}

Deno.test("refusal: a call that would get much less for a running one waits for its end", async () => {
  using world = await createWorld();
  const { first, second, gate } = await squeezed(world);
  await world.clock.advance(500);
  assert.equal(world.upstream.calls.length, 1);
  gate.open();
  await first;
  assert.equal((await until(world, second, 50)).body.paywall, undefined);
  assert.ok(world.upstream.calls[1]?.body.max_tokens > 900);
});

Deno.test("refusal: no one waits longer than 10 s, however often something ends before", async () => {
  using world = await createWorld({ project: { pricing: dear } });
  await world.deposit("ada", "1.1");
  const { answer, held, gate } = running(world, 2);
  await held();
  let answered = false;
  const next = world.json(chatPath, { body: chatBody("ada") }).then(() => (answered = true));
  for (let second = 1; second <= 11; second++) {
    assert.equal(answered, second === 11, `after ${second - 1} s`);
    await world.deposit("ada", "0.000000001");
    await world.clock.advance(second === 10 ? 1_010 : 1_000);
  }
  gate.open();
  await Promise.all([answer, next]);
});

Deno.test("refusal: dead holds left for later keep no more held than before", () => {
  const dead = (n: number): Hold => (
    {
      id: `${n}`,
      amount: fromDecimal("1"),
      expiresAt: 1,
      used: fromDecimal("2"),
      connectionId: null,
      budgets: [],
      holder: null,
    }
  );
  const account = { ...emptyAccount(), holds: Array.from({ length: 30 }, (_, n) => dead(n)) };
  const ending = takeEnded(account, account.holds, () => true);
  assert.equal(account.held, BigInt(30 - ending.length) * fromDecimal("1"));
});

Deno.test("refusal: when a call ends, a waiting one continues for 2 s from then", async () => {
  using world = await createWorld({ project: { pricing: dear } });
  await world.deposit("ada", "1.1");
  const { answer, held, gate } = running(world, 2);
  await held();
  let answered = false;
  const next = world.json(chatPath, { body: chatBody("ada") }).then(() => (answered = true));
  await world.clock.advance(1_000);
  await world.deposit("ada", "0.000000001");
  await world.clock.advance(1_900);
  assert.equal(answered, false);
  await world.clock.advance(200);
  assert.equal(answered, true);
  gate.open();
  await Promise.all([answer, next]);
});

Deno.test("refusal: after 2 s of waiting for more, the shorter response starts", async () => {
  using world = await createWorld();
  const { first, second, gate } = await squeezed(world);
  await world.clock.advance(2_100);
  assert.equal((await second).body.paywall, undefined);
  assert.ok(world.upstream.calls[1]?.body.max_tokens < 1_000);
  gate.open();
  await first;
});
