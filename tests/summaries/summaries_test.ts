import assert from "node:assert/strict";
import { formatAmount, fromDecimal, toAmount } from "../../src/base/money.ts";
import { sumKey, sumsPrefix } from "../../src/store/keys.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { readSummary, type Summary } from "../../src/summaries/summary.ts";
import {
  countCallHourly,
  countEntryHourly,
  countKeyHourly,
} from "../../src/summaries/hourly_counters.ts";
import { readPart } from "../../src/summaries/part.ts";
import { chat } from "../support/chat.ts";
import { createScriptedStore } from "../support/store.ts";
import { put } from "../support/verify.ts";
import { adminKey, createWorld, testPricing, type World } from "../support/world.ts";

const hourMs = 3_600_000;

/** All summaries, once the counters are written. */
async function summary(world: World): Promise<Summary> {
  await world.app.flush();
  return await readSummary(world.deps.kv, world.projectId, { from: 0, to: world.clock.now() + 1 });
}

/** The sums of these users' entries, by kind. */
async function entriesOf(world: World, users: string[]) {
  const entries = (await Promise.all(users.map((user) => world.activities(user)))).flat();
  const total = (kinds: string[], field: "amount" | "shortfall" = "amount") =>
    formatAmount(
      entries.filter(({ kind }) => kinds.includes(kind))
        .reduce((sum, entry) => sum + fromDecimal(entry[field]), 0n),
    );
  return { entries, total };
}

async function assertAddsUp(world: World, users: string[]): Promise<void> {
  const { totals } = await summary(world);
  const { entries, total } = await entriesOf(world, users);
  assert.equal(totals.requests, entries.filter(({ kind }) => kind === "usage").length);
  assert.equal(formatAmount(totals.cost), total(["usage", "expired"]));
  assert.equal(formatAmount(totals.deposits), total(["deposit"]));
  assert.equal(formatAmount(totals.charges), total(["charge"]));
  assert.equal(formatAmount(toAmount(totals.givenBack + totals.takenBack)), total(["refund"]));
}

const charge = (world: World, user: string, amount: string) =>
  world.json("/v1/user/charge", { body: { user, amount } });

Deno.test("summary: money and tokens equal the entries exactly", async () => {
  using world = await createWorld({ project: { trialCredits: "0.5" } });
  await world.deposit("ada", "1");
  await world.deposit("bob", "2");
  for (let n = 0; n < 3; n++) await chat(world);
  const { body } = await charge(world, "bob", "0.25");
  await world.json("/v1/user/refund", { body: { user: "bob", activityId: body.activityId } });
  await assertAddsUp(world, ["ada", "bob"]);
  const { totals, models } = await summary(world);
  assert.equal(totals.requests, 3);
  assert.equal(formatAmount(totals.trials), "1");
  assert.deepEqual([totals.uncachedInput, totals.output], [30, 15]);
  assert.deepEqual(models.map(({ model, requests }) => [model, requests]), [["test-model", 3]]);
  assert.equal(models[0]?.cost, totals.cost);
});

Deno.test("summary: tokens of every class, and shortfalls of every kind, have their positions", async () => {
  using world = await createWorld();
  const { projectId, deps: { committer } } = world;
  const usage = {
    model: "m",
    uncachedInputTokens: 1,
    cachedInputTokens: 2,
    cacheWriteTokens: 4,
    outputTokens: 8,
    reasoningTokens: 3,
  };
  const kinds = ["usage", "expired", "refund", "charge", "deposit", "trial"];
  const additions = kinds.map((kind, at) =>
    countEntryHourly({
      projectId,
      kind,
      isUse: true,
      amount: fromDecimal(String(2 ** at)),
      shortfall: fromDecimal(kind === "trial" ? "0" : String(10 ** at)),
      usage: kind === "usage" ? usage : null,
      at: world.clock.now(),
    })
  );
  await committer.commit({ ...emptyWrite(), additions });
  const { totals } = await summary(world);
  const { uncachedInput, cachedInput, cacheWrite, output, reasoning } = totals;
  assert.deepEqual([uncachedInput, cachedInput, cacheWrite, output, reasoning], [1, 2, 4, 8, 3]);
  const { cost, charges, deposits, trials, shortfall } = totals;
  assert.deepEqual(
    [cost, charges, deposits, trials, shortfall].map(formatAmount),
    ["3", "8", "16", "32", "11111"],
  );
});

Deno.test("summary: each hour has its own row, and a period covers whole hours", async () => {
  using world = await createWorld();
  const start = world.clock.now();
  await world.deposit("ada", "1");
  await world.clock.advance(hourMs);
  await world.deposit("ada", "2");
  await world.clock.advance(2 * hourMs);
  await world.deposit("ada", "4");
  const { hours } = await summary(world);
  assert.deepEqual(
    hours.map(({ start: at, totals }) => [(at - start) / hourMs, formatAmount(totals.deposits)]),
    [[0, "1"], [1, "2"], [3, "4"]],
  );
  const read = (from: number, to: number) =>
    readSummary(world.deps.kv, world.projectId, { from: start + from, to: start + to });
  assert.equal(formatAmount((await read(0, hourMs)).totals.deposits), "1");
  assert.equal(formatAmount((await read(hourMs + 5, 3 * hourMs)).totals.deposits), "2");
  assert.equal(formatAmount((await read(hourMs, 4 * hourMs)).totals.deposits), "6");
});

Deno.test("summary: refusals and failures are counted by reason", async () => {
  using world = await createWorld({ project: { limits: { user: { requestsPerMinute: 2 } } } });
  await chat(world);
  await charge(world, "ada", "1");
  await world.deposit("ada", "1");
  world.upstream.once(() => new Response("broken", { status: 500 }));
  await chat(world);
  await chat(world);
  await chat(world);
  const { refusals, refusedCharges, failures, totals } = await summary(world);
  assert.deepEqual(refusals, [
    { reason: "insufficient_funds", count: 1 },
    { reason: "rate_limit_exceeded", count: 1 },
  ]);
  assert.deepEqual(refusedCharges, [{ reason: "insufficient_funds", count: 1 }]);
  assert.deepEqual(failures, [{ reason: "upstream_error", count: 1 }]);
  const { requests, calls, refused, failed } = totals;
  assert.deepEqual([requests, calls, refused, failed], [4, 2, 2, 1]);
});

Deno.test("summary: a refusal waits for nothing: it goes with the next write, or the sweep", async () => {
  using world = await createWorld({ project: { billingEvents: false } });
  const commits = world.deps.metrics.commits.landed.value;
  await chat(world);
  await chat(world);
  const read = () =>
    readSummary(world.deps.kv, world.projectId, { from: 0, to: world.clock.now() + 1 });
  assert.ok(world.deps.metrics.commits.landed.value - commits <= 2, "no write of its own");
  await world.app.sweep();
  assert.equal((await read()).totals.refused, 2);
  await world.app.flush();
  assert.equal((await read()).totals.refused, 2, "and it is counted once");
});

Deno.test("summary: two processes on one store, and one after them, add up", async () => {
  using first = await createWorld();
  using second = await createWorld({ shareWith: first });
  await Promise.all(Array.from({ length: 40 }, (_, n) => {
    const world = n % 2 === 0 ? first : second;
    return world.deposit(n % 4 < 2 ? "ada" : "bob", "0.5");
  }));
  using third = await createWorld({ shareWith: first });
  await third.deposit("ada", "1");
  const { totals } = await summary(third);
  assert.equal(formatAmount(totals.deposits), "21");
  await assertAddsUp(third, ["ada", "bob"]);
});

const faults: [
  label: string,
  fault: (real: () => Promise<string | null>) => Promise<string | null>,
][] = [
  ["says no without a reason", () => Promise.resolve(null)],
  ["throws, and wrote nothing", () => Promise.reject(new Error("connection lost"))],
  ["writes, and says no", (real) => real().then(() => null)],
  ["writes, and throws", (real) => real().then(() => Promise.reject(new Error("lost")))],
];

for (const [label, fault] of faults) {
  Deno.test(`summary: a store that ${label} leaves the sums equal to the entries`, async () => {
    const store = createScriptedStore();
    using world = await createWorld({ wrapKv: store.wrap });
    await world.deposit("ada", "1");
    for (let n = 0; n < 3; n++) {
      store.atomic = async (write, real) => {
        store.atomic = null;
        return await fault(() => real(write));
      };
      await world.call("/v1/user/balance/deposit", { body: { user: "ada", amount: "2" } });
      await world.deposit("ada", "4");
    }
    await assertAddsUp(world, ["ada"]);
  });
}

Deno.test("summary: a write of unknown outcome is counted if it landed", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  let calls = 0;
  store.atomic = async (write, real) => {
    calls++;
    // The write succeeds, but its response and those of later checks are lost.
    if (calls === 1) await real(write);
    if (calls === 4) store.atomic = null;
    throw new Error("connection lost");
  };
  const lost = await world.call("/v1/user/balance/deposit", { body: { user: "ada", amount: "2" } });
  assert.equal(lost.status, 503);
  await world.deposit("ada", "4");
  assert.equal((await world.balance("ada")).balance, "7");
  await assertAddsUp(world, ["ada"]);
});

Deno.test("summary: however many models callers name, an hour's row stays small", async () => {
  using world = await createWorld({
    project: { pricing: { models: { "*": testPricing.models["test-model"] } } },
  });
  await world.deposit("ada", "100");
  for (let n = 0; n < 60; n++) await chat(world, { model: `model-${n}-${"x".repeat(n * 3)}` });
  const { models, totals } = await summary(world);
  assert.equal(totals.requests, 60);
  assert.equal(models.length, 25);
  assert.equal(models.find(({ model }) => model === "other")?.requests, 36);
  const rows = await world.deps.kv.list({ prefix: sumsPrefix(world.projectId), limit: 100 });
  assert.equal(rows.length, 1, "one hour, one process, one row");
  assert.ok((rows[0]?.value?.length ?? Infinity) < 8 * 1024);
});

Deno.test("summary: the longest names that callers can use keep a row within its bounds", async () => {
  using world = await createWorld();
  const add = (group: string, values: readonly bigint[]) => {
    for (let n = 0; n < 60; n++) {
      const name = ["\u0001", "é", "x", "💶"][n % 4]?.repeat(n * 2) ?? "";
      world.deps.committer.count({ key: sumKey(world.projectId, 0), field: group + name, values });
    }
  };
  add("model:", Array.from({ length: 8 }, () => 10n ** 18n));
  add("refused:", [1n]);
  add("failed:", [1n]);
  await world.app.flush();
  const [row] = await world.deps.kv.list({ prefix: sumKey(world.projectId, 0), limit: 10 });
  assert.ok((row?.value?.length ?? Infinity) < 15 * 1024, `${row?.value?.length} bytes`);
  const { refusals, failures } = await summary(world);
  const counted = [refusals, failures].map((counts) =>
    counts.reduce((sum, { count }) => sum + count, 0)
  );
  assert.deepEqual(counted, [60, 60]);
});

Deno.test("summary: the operator reads it, for any valid period", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world);
  await world.app.flush();
  const read = (query = "", key = adminKey) =>
    world.json(`/v1/admin/projects/${world.projectId}/summary${query}`, { key });
  const { status, body } = await read();
  assert.equal(status, 200);
  assert.equal(body.totals.deposits, "1");
  assert.equal(body.totals.cost, "0.00002");
  assert.deepEqual(body.topUsers, {
    month: "2026-01",
    users: [{ user: "ada", requests: 1, tokens: 15, spent: "0.00002" }],
  });
  assert.deepEqual(body.topSpenders, [{ user: "ada", spent: "0.00002", atMost: "0.00002" }]);
  assert.equal((await read("?from=2026-01-02")).body.error.param, "from", "after `to`");
  assert.equal((await read("?from=2024-01-01")).status, 400);
  const days = [["2025-12-31", 400], ["2026-01-31", 400], ["2026-02-01", 200]] as const;
  for (const [to, wanted] of days) {
    const { status, body } = await read(`?from=2026-01-31&to=${to}`);
    assert.deepEqual([status, body.topUsers?.month], [
      wanted,
      wanted === 200 ? "2026-01" : undefined,
    ]);
  }
  assert.equal((await read("?from=2024-11-27&to=2026-01-01")).status, 200, "400 days");
  assert.equal((await read("?from=2024-11-26&to=2026-01-01")).status, 400, "401 days");
  assert.equal((await read("?to=yesterday")).body.error.param, "to");
  assert.equal((await read("?from=2025-12-31T12:00:00Z&to=2026-01-01")).body.totals.deposits, "0");
  const before1970 = await read("?from=1969-12-31T23:30:00Z&to=1969-12-31T23:45:00Z");
  assert.deepEqual([before1970.status, before1970.body.totals.deposits], [200, "0"]);
  assert.equal((await read("", world.apiKey)).status, 401);
  const unknown = await world.json("/v1/admin/projects/pw_1/summary", { key: adminKey });
  assert.equal(unknown.status, 404);
});

Deno.test("summary: of a long period every hour counts, however many rows are read for it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const [row] = await world.deps.kv.list({ prefix: sumsPrefix(world.projectId), limit: 2 });
  const { key: [, , first, shard], value } = row ?? assert.fail();
  for (let hour = 1; hour < 1_010; hour++) {
    const key = [...sumKey(world.projectId, Number(first) + hour * hourMs), shard ?? ""];
    await put(world, key, value ?? assert.fail());
  }
  world.clock.set(1_010 * hourMs);
  const { totals, hours } = await summary(world);
  assert.equal(hours.length, 1_010);
  assert.equal(formatAmount(totals.deposits), "1010");
});

Deno.test("summary: money is counted also in an hour of more models than fit into a row", async () => {
  const models = { "*": { input: "1", output: "2", maxOutputTokens: 1000 } };
  using world = await createWorld({ project: { pricing: { models } } });
  for (let n = 0; n < 30; n++) {
    if (n === 0) await world.deposit("ada", "100");
    assert.equal((await chat(world, { model: `m-${n}` })).status, 200);
  }
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "7" } });
  const summary = `/v1/admin/projects/${world.projectId}/summary`;
  const { body } = await world.json(summary, { key: adminKey });
  assert.deepEqual([body.totals.deposits, body.totals.charges], ["100", "7"]);
});

Deno.test("summary: an upstream's rate limit is told from our own", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => new Response("slow down", { status: 429 }));
  await chat(world);
  const { refusals, failures } = await summary(world);
  assert.deepEqual([refusals, failures], [[], [{ reason: "upstream_rate_limited", count: 1 }]]);
});

Deno.test("summary: the average latency is of the calls whose time is counted, canceled ones included", async () => {
  using world = await createWorld();
  const { kv } = world.deps;
  const common = { projectId: world.projectId, firstTokenMs: null, at: world.clock.now() };
  const cost = fromDecimal("0");
  const times = [["completed", 100], ["canceled", 300], ["failed", 5_000], ["refused", 1]] as const;
  const additions = times.flatMap(([outcome, latencyMs]) => [
    countCallHourly({ ...common, model: "m", outcome, latencyMs }),
    countKeyHourly({
      ...{ ...common, keyId: "key_1", outcome, latencyMs, cost },
      ...{ inputTokens: 0, outputTokens: 0, upstreamCost: null },
    }),
  ]);
  for (const addition of additions) world.deps.committer.count(addition);
  await world.app.flush();
  const range = { from: 0, to: world.clock.now() + 1 };
  for (const part of [{ model: "m" }, { key: "key_1" }]) {
    const { totals } = await readPart(kv, world.projectId, range, part);
    assert.deepEqual([totals.requests, totals.failed, totals.refused], [4, 1, 1]);
    assert.equal(totals.latencyMs, 200);
  }
});
