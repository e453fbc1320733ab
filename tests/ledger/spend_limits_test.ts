import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { formatAmount, fromDecimal } from "../../src/base/money.ts";
import {
  addUsage,
  decodePeriodSpend,
  encodePeriodSpend,
  type PeriodSpend,
  spentAt,
} from "../../src/ledger/period_spend.ts";
import { chatBody, chatPath, checkBooks, storedAccount } from "../support/books.ts";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import {
  chunk,
  completion,
  fedStream,
  readEvents,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

await loadTokenizer();

/** Each token of a response costs 1, and a response has at most 8. */
const pricing = {
  models: {
    "test-model": { input: "0", output: "1000000", maxOutputTokens: 8, minOutputTokens: 1 },
  },
};

/** A response that has begun; `end` gives it this many tokens. */
async function begin(world: World): Promise<{ end(tokens: number): Promise<void> }> {
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const events = readEvents(await chatStream(world));
  stream.send(chunk({ content: "one" }));
  await world.clock.advance(1_000);
  return {
    async end(tokens) {
      stream.send(usageChunk(usage(8, tokens)));
      stream.send("[DONE]");
      stream.end();
      await events;
    },
  };
}

/** The user's wallet is disconnected, and authorized again by this device. */
async function handOver(world: World, device: Device, cap: string): Promise<void> {
  await world.json("/v1/user/disconnect", { body: { user: "ada" } });
  await world.clock.advance(1_000);
  await allow(device, { cap });
}

/** The spend after one more charge, as it is stored and read again. */
function counted(before: PeriodSpend | null, at: string, spent: string): PeriodSpend {
  const used = { requests: 1, tokens: 2, spent: fromDecimal(spent) };
  const use = decodePeriodSpend(encodePeriodSpend(addUsage(before, used, Date.parse(at))));
  return use ?? assert.fail();
}

/** The spend of the day and of the month of a time. */
function spentIn(at: string, use: PeriodSpend | null): [day: string, month: string] {
  const { day, month } = spentAt(Date.parse(at), use);
  return [formatAmount(day), formatAmount(month)];
}

Deno.test("spend limits: a day and a month each start at zero", () => {
  assert.deepEqual(spentIn("2026-01-30", null), ["0", "0"]);
  let use = counted(null, "2026-01-30T23:59:59.999Z", "3");
  use = counted(use, "2026-01-30T23:59:59.999Z", "0.5");
  assert.deepEqual(spentIn("2026-01-30T23:59:59.999Z", use), ["3.5", "3.5"]);
  assert.deepEqual(spentIn("2026-01-31", use), ["0", "3.5"]);
  use = counted(use, "2026-01-31", "1");
  assert.deepEqual(spentIn("2026-01-31T12:00Z", use), ["1", "4.5"]);
  assert.deepEqual([use.requests, use.tokens], [3, 6]);
  assert.deepEqual(spentIn("2026-02-01", use), ["0", "0"]);
  use = counted(use, "2026-02-01", "2");
  assert.deepEqual(spentIn("2026-02-01", use), ["2", "2"]);
  assert.deepEqual([use.month, use.requests, use.tokens], ["2026-02", 1, 2]);
});

Deno.test("spend limits: a period started by one clock continues by a slower one, unless it was far ahead", () => {
  let use = counted(null, "2026-02-01T00:00:01Z", "3");
  const behind = "2026-01-31T23:59:59Z";
  assert.deepEqual(spentIn(behind, use), ["3", "3"]);
  use = counted(use, behind, "1");
  assert.deepEqual([use.day, use.month], ["2026-02-01", "2026-02"]);
  assert.deepEqual(spentIn("2026-02-01T00:00:02Z", use), ["4", "4"]);
  const ahead = counted(null, "2026-04-02", "9");
  assert.deepEqual(spentIn(behind, ahead), ["0", "0"]);
  assert.deepEqual(spentIn(behind, counted(ahead, behind, "1")), ["1", "1"]);
});

Deno.test("spend limits: a response longer than requested takes no more than the limit", async () => {
  using world = await createWorld({ project: { limits: { user: { spendPerDay: "0.001" } } } });
  await world.deposit("ada", "10");
  world.upstream.reply(() => completion({ usage: usage(10, 20_000) }));
  await chat(world);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.shortfall], ["0.001", "0.03901"]);
});

Deno.test("spend limits: a limit set during a day includes what the day and the month have cost", async () => {
  for (const limit of ["spendPerDay", "spendPerMonth"]) {
    using world = await createWorld();
    await world.deposit("ada", "100");
    assert.equal((await charge(world, "8")).success, true);
    await operate(world, "", { method: "PATCH", body: { limits: { user: { [limit]: "9" } } } });
    const beyond = await charge(world, "2");
    assert.deepEqual([beyond.success, beyond.reason], [false, "limit_reached"], limit);
    assert.equal((await charge(world, "1")).success, true, limit);
  }
});

Deno.test("spend limits: a call that outlasts its authorization counts toward the day of its grantor", async () => {
  using world = await sharedWorld({ pricing });
  const grace = new Device(world);
  await allow(grace, { cap: "8" });
  await pay(world, { amount: "100" });
  const answer = await begin(world);
  await handOver(world, new Device(world), "8");
  await answer.end(8);
  await handOver(world, grace, "9");
  assert.equal((await charge(world, "2")).success, false);
  assert.equal((await charge(world, "1")).success, true);
});

Deno.test("spend limits: a call that outlasts its authorization counts when the person grants again", async () => {
  using world = await sharedWorld({ pricing });
  const grace = new Device(world);
  await allow(grace, { cap: "8" });
  await pay(world, { amount: "100" });
  const answer = await begin(world);
  await handOver(world, grace, "9");
  await answer.end(8);
  assert.equal((await charge(world, "2")).success, false);
  assert.equal((await charge(world, "1")).success, true);
});

Deno.test("spend limits: and takes no more of their wallet than it held", async () => {
  using world = await sharedWorld({ pricing });
  const grace = new Device(world);
  await allow(grace, { cap: "8" });
  await pay(world, { amount: "100" });
  const answer = await begin(world);
  await handOver(world, new Device(world), "50");
  await answer.end(30);
  const { html } = await grace.get("/wallet");
  assert.match(html, /title="8 USD">\$8\.00</);
});

Deno.test("spend limits: a clock that was once ahead does not lock anyone out for as long", async () => {
  using world = await createWorld({ project: { limits: { user: { requestsPerMinute: 60 } } } });
  await world.deposit("ada", "10");
  const day = 24 * 60 * 60_000;
  world.clock.set(day);
  await chat(world);
  world.clock.set(-day);
  assert.equal((await chat(world)).status, 200);
});

Deno.test("spend limits: at the most concurrent calls the next is refused at once, whatever the balance", async () => {
  using world = await createWorld({ project: { limits: { user: { concurrent: 1 } }, pricing } });
  await world.deposit("ada", "8");
  const answer = await begin(world);
  const { status, body } = await world.json(chatPath, { body: chatBody("ada") });
  assert.deepEqual([status, body.error.code], [429, "concurrency_limit"]);
  await answer.end(8);
  await checkBooks(world, "ada");
});

Deno.test("spend limits: a limit above the balance lends no one money", async () => {
  const limits = { user: { spendPerDay: "50" } };
  using world = await createWorld({ project: { limits, pricing } });
  await world.deposit("ada", "5");
  const beyond = await charge(world, "6");
  assert.deepEqual([beyond.success, beyond.reason], [false, "insufficient_funds"]);
  world.upstream.reply(() => completion({ usage: usage(10, 20) }));
  await chat(world);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.shortfall], ["5", "15"]);
  await checkBooks(world, "ada");
});

Deno.test("spend limits: what another user holds of the same wallet does not count toward others' caps", async () => {
  using world = await sharedWorld({ pricing });
  const grace = new Device(world);
  for (const user of ["ada", "bob"]) await allow(grace, { user, cap: "8" });
  await pay(world, { amount: "100" });
  const answer = await begin(world);
  assert.equal((await charge(world, "8", { user: "bob" })).success, true);
  for (const user of ["ada", "bob"]) {
    assert.equal((await charge(world, "1", { user })).success, false, user);
  }
  await answer.end(8);
});

Deno.test("spend limits: this month's spending still counts after a new authorization", async () => {
  using world = await sharedWorld({ limits: { user: { spendPerMonth: "5" } } });
  const grace = new Device(world);
  await allow(grace);
  await pay(world, { amount: "100" });
  assert.equal((await charge(world, "4")).success, true);
  await handOver(world, grace, "50");
  assert.deepEqual((await charge(world, "2")).reason, "limit_reached");
  assert.equal((await charge(world, "1")).success, true);
});

Deno.test("spend limits: this minute's requests still count after a new authorization", async () => {
  using world = await sharedWorld({ pricing, limits: { user: { requestsPerMinute: 2 } } });
  const grace = new Device(world);
  await allow(grace);
  await pay(world);
  for (let times = 0; times < 2; times++) await chat(world);
  await handOver(world, grace, "10");
  const { status, body } = await world.json(chatPath, { body: chatBody("ada") });
  assert.deepEqual([status, body.error?.code], [429, "rate_limit_exceeded"]);
});

Deno.test("spend limits: without limits, nothing is counted for them", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world);
  assert.equal((await storedAccount(world, "ada")).counters, null);
});

Deno.test("spend limits: what a running call holds is not available to anything else", async () => {
  const limits = { user: { spendPerDay: "10" } };
  using world = await createWorld({ project: { limits, pricing } });
  await world.deposit("ada", "100");
  const answer = await begin(world);
  assert.equal((await charge(world, "3")).success, false, "it holds 8");
  assert.equal((await charge(world, "2")).success, true);
  await answer.end(8);
  assert.equal((await charge(world, "0.1")).success, false);
});

Deno.test("spend limits: what an operator charges is limited by the balance alone", async () => {
  using world = await createWorld({ project: { limits: { user: { spendPerDay: "1" } } } });
  await world.deposit("ada", "5");
  const operatorCharges = (amount: string) =>
    operate(world, "/users/ada/charge", { body: { amount } });
  assert.equal((await charge(world, "4")).reason, "limit_reached");
  const { body } = await operatorCharges("4");
  assert.deepEqual([body.success, body.balance], [true, "1"]);
  assert.equal((await operatorCharges("2")).body.reason, "insufficient_funds");
  assert.equal((await charge(world, "1")).reason, "limit_reached", "the day has its charges");
  await checkBooks(world, "ada");
});

Deno.test("spend limits: an operator's charge takes nothing that a running call holds", async () => {
  const limits = { user: { spendPerDay: "8" } };
  using world = await createWorld({ project: { limits, pricing } });
  await world.deposit("ada", "10");
  const answer = await begin(world);
  const refused = await operate(world, "/users/ada/charge", { body: { amount: "9" } });
  assert.deepEqual([refused.body.success, refused.body.reason], [false, "balance_held"]);
  const taken = await operate(world, "/users/ada/charge", { body: { amount: "2" } });
  assert.equal(taken.body.success, true);
  await answer.end(8);
  await checkBooks(world, "ada");
});

Deno.test("spend limits: an operator takes no more from a wallet than its owner allows", async () => {
  using world = await sharedWorld({ limits: { user: { spendPerDay: "1" } } });
  await allow(new Device(world), { cap: "3" });
  await pay(world, { amount: "10" });
  const operatorCharges = async (amount: string) =>
    (await operate(world, "/users/ada/charge", { body: { amount } })).body;
  assert.equal((await operatorCharges("4")).success, false);
  assert.equal((await operatorCharges("3")).success, true);
});

Deno.test("spend limits: a deposit is refunded as a whole, however little may be spent", async () => {
  using world = await createWorld({ project: { limits: { user: { spendPerDay: "1" } } } });
  const deposit = { user: "ada", amount: "5" };
  const { activityId } = (await world.json("/v1/user/balance/deposit", { body: deposit })).body;
  const { body } = await operate(world, "/users/ada/refund", { body: { activityId } });
  assert.deepEqual([body.balance, body.shortfall], ["0", "0"]);
});
