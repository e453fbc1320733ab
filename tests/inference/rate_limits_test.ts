import assert from "node:assert/strict";
import { afterTaking, rateState } from "../../src/base/rate.ts";
import { createRateLimiter, durationText } from "../../src/inference/admit/rate_limiter.ts";
import { chatBody, chatPath, checkBooks } from "../support/books.ts";
import { allow, Device, pay, sharedWorld } from "../support/wallets.ts";
import { until } from "../support/chat.ts";
import { completion } from "../support/upstream.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const limited = (limits: Record<string, unknown>) => createWorld({ project: { limits } });

async function ask(world: World, user = "ada", more: Record<string, unknown> = {}) {
  const { status, body, response } = await world.json(chatPath, { body: chatBody(user, more) });
  return { status, body, header: (name: string) => response.headers.get(name) };
}

/** Responses that use this many tokens of input and output. */
function answerWith(world: World, input: number, output: number): void {
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  world.upstream.reply(() => completion({ usage }));
}

Deno.test("rate: a minute's worth at once, then one by one, and all of it after a minute", () => {
  const limit = 60;
  let usedUp = 0;
  for (let n = 0; n < limit; n++) {
    assert.equal(rateState(usedUp, limit, 1_000).remaining, limit - n);
    usedUp = afterTaking(usedUp, { count: 1, limit, now: 1_000 });
  }
  const state = rateState(usedUp, limit, 1_000);
  assert.deepEqual(state, { limit, remaining: 0, resetMs: 60_000, waitMs: 1_000 });
  assert.equal(rateState(usedUp, limit, 1_999).remaining, 0);
  assert.equal(rateState(usedUp, limit, 2_000).remaining, 1);
  assert.equal(rateState(usedUp, limit, 61_000).remaining, limit);
  assert.equal(rateState(usedUp, limit, 1e15).remaining, limit, "what is not used is not saved");
  const inDebt = afterTaking(usedUp, { count: 600, limit, now: 1_000 });
  assert.deepEqual(rateState(inDebt, limit, 1_000), {
    limit,
    remaining: 0,
    resetMs: 660_000,
    waitMs: 601_000,
  });
});

Deno.test("rate: with any limit exactly that many are available at once, then a caller waits", () => {
  const now = 1_234.567;
  for (let limit = 1; limit <= 300; limit++) {
    let usedUp = 0;
    for (let left = limit; left > 0; left--) {
      const { remaining, waitMs } = rateState(usedUp, limit, now);
      assert.deepEqual({ limit, remaining, waitMs }, { limit, remaining: left, waitMs: 0 });
      usedUp = afterTaking(usedUp, { count: 1, limit, now });
    }
    const { remaining, waitMs } = rateState(usedUp, limit, now);
    assert.deepEqual({ limit, remaining, waits: waitMs > 0 }, { limit, remaining: 0, waits: true });
  }
});

Deno.test("rate: durations are written as OpenAI writes them", () => {
  const table: [number, string][] = [
    [0, "0ms"],
    [16.2, "17ms"],
    [1_000, "1s"],
    [1_500, "1.5s"],
    [60_000, "1m0s"],
    [360_000, "6m0s"],
    [61_001, "1m1.001s"],
  ];
  for (const [ms, text] of table) assert.equal(durationText(ms), text);
});

Deno.test("limits: a user has a number of requests a minute, stated in headers, then 429", async () => {
  using world = await limited({ user: { requestsPerMinute: 3 } });
  await subscribe(world, { events: ["usage.rate.limited", "proxy.request.blocked"] });
  await world.deposit("ada", "10");
  await world.deposit("bob", "10");
  for (const left of ["2", "1", "0"]) {
    const { status, header } = await ask(world);
    assert.equal(status, 200);
    assert.equal(header("x-ratelimit-limit-requests"), "3");
    assert.equal(header("x-ratelimit-remaining-requests"), left);
    assert.equal(header("x-ratelimit-limit-tokens"), null, "there is none");
  }
  const before = await world.balance("ada");
  const refused = await ask(world);
  assert.deepEqual([refused.status, refused.body.error.code], [429, "rate_limit_exceeded"]);
  assert.deepEqual([refused.header("retry-after"), refused.header("retry-after-ms")], [
    "20",
    "20000",
  ]);
  assert.equal(refused.header("x-ratelimit-reset-requests"), "1m0s");
  assert.deepEqual(await world.balance("ada"), before, "and costs nothing");
  assert.equal((await ask(world, "bob")).status, 200, "another user has their own");
  using other = await createWorld({ shareWith: world });
  assert.equal((await ask(other)).status, 429, "in any process");
  await world.clock.advance(20_000);
  assert.equal((await ask(other)).status, 200);
  assert.equal((await ask(world)).status, 429);
  await deliver(world);
  const events = world.subscriber.received.map(({ body }) => body.event);
  const told = events.find(({ type }) => type === "usage.rate.limited");
  assert.deepEqual([told?.data.limit, told?.data.model, told?.data.walletUserId], [
    "requests",
    "test-model",
    "ada",
  ]);
  assert.ok(events.some(({ type }) => type === "proxy.request.blocked"));
  await checkBooks(world, "ada");
});

Deno.test("limits: a user without a balance has the same rate, and does not use up the key's", async () => {
  using world = await limited({
    user: { requestsPerMinute: 3 },
    key: { requestsPerMinute: 5 },
  });
  await world.deposit("bob", "10");
  const eve = async () => (await ask(world, "eve")).status;
  for (const expected of [200, 200, 200, 429, 429, 429]) assert.equal(await eve(), expected);
  assert.equal((await ask(world, "bob")).status, 200);
  await world.clock.advance(60_000);
  assert.equal(await eve(), 200, "a minute later as before");
});

for (const reply of ["error", "message"]) {
  Deno.test(`limits: a user who exceeded the rate has the same requests a minute as before, with ${reply}`, async () => {
    using world = await limited({ user: { requestsPerMinute: 1 }, reply });
    await world.deposit("ada", "10");
    const answered: boolean[] = [];
    for (let n = 0; n < 6; n++) {
      const { status, body } = await ask(world);
      answered.push(status === 200 && body.paywall === undefined);
      await world.clock.advance(30_000);
    }
    assert.deepEqual(answered, [true, false, true, false, true, false]);
  });
}

Deno.test("limits: tokens count once they are used", async () => {
  using world = await limited({ user: { tokensPerMinute: 1_000 } });
  await world.deposit("ada", "10");
  answerWith(world, 400, 100);
  const first = await ask(world);
  assert.equal(first.header("x-ratelimit-remaining-tokens"), "1000", "before it was answered");
  assert.equal((await ask(world)).header("x-ratelimit-remaining-tokens"), "500");
  const refused = await ask(world);
  assert.equal(refused.status, 429);
  assert.match(refused.body.error.message, /1000 tokens a minute/);
  await world.clock.advance(59_000);
  assert.equal((await ask(world)).status, 200);
});

Deno.test("limits: a project may respond with a message in the chat instead", async () => {
  using world = await limited({ user: { requestsPerMinute: 1 }, reply: "message" });
  await subscribe(world, { events: ["usage.rate.limited", "request.blocked"] });
  await world.deposit("ada", "10");
  await ask(world);
  const { status, body, header } = await ask(world);
  assert.equal(status, 200);
  assert.equal(body.paywall.reason, "limit_reached");
  assert.equal(header("x-service-paywall"), "limit_reached");
  assert.match(body.choices[0].message.content, /faster than Test allows/);
  await deliver(world);
  assert.deepEqual(world.subscriber.types().sort(), ["request.blocked", "usage.rate.limited"]);
});

Deno.test("limits: a user's daily and monthly spending is never exceeded, and leads to a message", async () => {
  using world = await createWorld({
    project: {
      limits: { user: { spendPerDay: "0.003", spendPerMonth: "0.005" } },
      pricing: { models: { "test-model": { input: "0", output: "10", minOutputTokens: 1 } } },
    },
  });
  await world.deposit("ada", "10");
  answerWith(world, 10, 100);
  const eight = () => until(world, Promise.all(Array.from({ length: 8 }, () => ask(world))), 50);
  const answers = await eight();
  const spent = answers.filter(({ body }) => !body.paywall).length;
  assert.equal(spent, 3, "a thousandth each, held before they are answered");
  const refused = answers.find(({ body }) => body.paywall);
  assert.equal(refused?.status, 200);
  assert.equal(refused?.body.paywall.reason, "limit_reached");
  assert.match(refused?.body.choices[0].message.content, /reached your spending limit for Test/);
  await world.clock.advance(24 * 60 * 60 * 1000);
  const next = await eight();
  assert.equal(next.filter(({ body }) => !body.paywall).length, 2, "the month's rest");
  assert.equal((await world.balance("ada")).balance, "9.995");
  await world.clock.advance(31 * 24 * 60 * 60 * 1000);
  assert.equal((await ask(world)).body.paywall, undefined, "the next month");
  await checkBooks(world, "ada");
});

Deno.test("limits: a key's requests and concurrent calls are limited over all its users", async () => {
  using world = await limited({ key: { requestsPerMinute: 4, concurrent: 2 } });
  for (const user of ["ada", "bob", "eve"]) await world.deposit(user, "10");
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return completion();
  });
  const running = [ask(world, "ada"), ask(world, "bob")];
  await world.until(() => world.upstream.calls.length >= 2);
  const third = await ask(world, "eve");
  assert.deepEqual([third.status, third.body.error.code], [429, "concurrency_limit"]);
  gate.resolve();
  for (const { status } of await Promise.all(running)) assert.equal(status, 200);
  for (let n = 0; n < 2; n++) assert.equal((await ask(world, "eve")).status, 200);
  const fast = await ask(world, "eve");
  assert.deepEqual([fast.status, fast.header("retry-after")], [429, "15"]);
  const { body } = await world.json(`/v1/admin/projects/${world.projectId}/keys`, {
    key: adminKey,
    body: { scopes: ["chat"] },
  });
  const other = await world.json(chatPath, { key: body.apiKey, body: chatBody("eve") });
  assert.equal(other.status, 200, "another key has its own");
});

Deno.test("limits: a key's concurrent calls are limited even without its other limits", async () => {
  using world = await limited({ key: { concurrent: 1 } });
  await world.deposit("ada", "10");
  const gate = Promise.withResolvers<void>();
  world.upstream.once(async () => {
    await gate.promise;
    return completion();
  });
  const running = ask(world);
  await world.until(() => world.upstream.calls.length >= 1);
  assert.equal((await ask(world)).body.error.code, "concurrency_limit");
  gate.resolve();
  assert.equal((await running).status, 200);
});

Deno.test("limits: a permit is released by calls that fail, are abandoned, or are refused", async () => {
  using world = await limited({ key: { concurrent: 1 }, user: { concurrent: 1 } });
  await world.deposit("ada", "10");
  world.upstream.reply(() => Response.json({ error: { message: "down" } }, { status: 500 }));
  for (let n = 0; n < 3; n++) assert.equal((await ask(world)).status, 502);
  assert.equal((await ask(world, "poor")).body.paywall.reason, "insufficient_funds");
  assert.equal((await ask(world, "ada", { model: "unknown" })).status, 404);
  answerWith(world, 10, 10);
  for (let n = 0; n < 3; n++) assert.equal((await ask(world)).status, 200);
});

Deno.test("limits: one user's concurrent calls are limited across processes", async () => {
  using world = await createWorld({
    isShared: true,
    project: { limits: { user: { concurrent: 1 } } },
  });
  using other = await createWorld({ shareWith: world });
  await world.deposit("ada", "10");
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return completion();
  });
  const running = ask(world);
  await world.until(() => world.upstream.calls.length >= 1);
  const second = await ask(other);
  assert.deepEqual([second.status, second.body.error.code, second.header("retry-after")], [
    429,
    "concurrency_limit",
    "1",
  ]);
  gate.resolve();
  assert.equal((await running).status, 200);
});

Deno.test("limits: the limits of one project's user only limit that project's part of a wallet", async () => {
  using world = await sharedWorld({ limits: { user: { requestsPerMinute: 1 } } });
  const other = await world.makeProject({ name: "Painter", mode: "shared" });
  const device = new Device(world);
  await allow(device, { cap: "100" });
  await allow(device, { user: "ada", key: other.apiKey, cap: "100" });
  await pay(world, { amount: "50" });
  assert.equal((await ask(world)).body.paywall, undefined);
  assert.equal((await ask(world)).status, 429);
  for (let n = 0; n < 3; n++) {
    const { status } = await world.json(chatPath, { key: other.apiKey, body: chatBody("ada") });
    assert.equal(status, 200);
  }
});

Deno.test("limits: an invalid limit is 400 with the field's name", async () => {
  using world = await createWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  for (
    const [limits, param] of [
      [{ user: { requestsPerMinute: 0 } }, "limits.user.requestsPerMinute"],
      [{ user: { spendPerDay: 5 } }, "limits.user.spendPerDay"],
      [{ key: { spendPerDay: "5" } }, "limits.key"],
      [{ reply: "silence" }, "limits.reply"],
      ["none", "limits"],
    ] as const
  ) {
    const { status, body } = await world.json(path, {
      method: "PATCH",
      key: adminKey,
      body: { limits },
    });
    assert.equal(status, 400);
    assert.ok(String(body.error.param).startsWith(param), `${body.error.param} for ${param}`);
  }
});

Deno.test("limits: a charge counts toward what a user may spend, and is refused beyond it", async () => {
  const spend = { spendPerDay: "3", spendPerMonth: "5" };
  using world = await createWorld({ project: { limits: { user: spend } } });
  await subscribe(world, { events: ["balance.charge.failed", "balance.depleted"] });
  await world.deposit("ada", "10");
  const charge = async (amount: string) =>
    (await world.json("/v1/user/charge", { body: { user: "ada", amount } })).body;
  assert.equal((await charge("2")).success, true);
  const refused = await charge("1.000001");
  assert.deepEqual([refused.success, refused.reason, refused.balance], [
    false,
    "limit_reached",
    "8",
  ]);
  assert.match(refused.message, /reached your spending limit for Test.*\/t\//);
  assert.equal((await charge("1")).success, true);
  await world.clock.advance(24 * 60 * 60 * 1000);
  assert.equal((await charge("2.000001")).reason, "limit_reached", "the month's rest is 2");
  assert.equal((await charge("2")).success, true);
  assert.equal((await charge("6")).reason, "insufficient_funds", "more than there is at all");
  await deliver(world);
  const codes = world.subscriber.received.map(({ body: { event: { data } } }) => data.errorCode);
  assert.deepEqual(codes.filter(Boolean), ["spend_limit", "spend_limit", "insufficient_funds"]);
  await checkBooks(world, "ada");
});

Deno.test("limits: an entry is dropped for new ones only once its rate is fully available again", () => {
  let now = 0;
  const limiter = createRateLimiter({ elapsed: () => now });
  const acquire = (key: string, requestsPerMinute: number) => {
    const acquired = limiter.acquire(key, {
      requestsPerMinute,
      tokensPerMinute: null,
      concurrent: null,
    });
    if ("limited" in acquired) return false;
    acquired.release();
    return true;
  };
  assert.equal(acquire("used up", 1), true);
  for (let n = 1; n < 100_000; n++) acquire(`idle ${n}`, 60_000);
  now = 2_000;
  // One more than the limiter keeps: idle ones are dropped.
  assert.equal(acquire("new", 60_000), true);
  assert.equal(acquire("used up", 1), false);
});
