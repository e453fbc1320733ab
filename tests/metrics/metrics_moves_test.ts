import assert from "node:assert/strict";
import { firstIdAt } from "../../src/base/ids.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { commitMarkerKey, dueKey, readyKey } from "../../src/store/keys.ts";
import { leaseMs as leaseOf } from "../../src/webhooks/delivery/lease.ts";
import { outboxGraceMs, unwrittenMaxMs } from "../../src/webhooks/delivery/fan_out.ts";
import { chat, chatStream, openReader, until } from "../support/chat.ts";
import { settle } from "../support/clock.ts";
import { stripeCases } from "../support/payments.ts";
import {
  familyOf,
  openMetered,
  type Options,
  scrape,
  whileAnswering,
} from "../support/prometheus.ts";
import { createScriptedStore } from "../support/store.ts";
import { chunk, fedStream, sse } from "../support/upstream.ts";
import { put } from "../support/verify.ts";
import { deliver, operate, retry, subscribe } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

await loadTokenizer(); // Loaded once: a hand-moved clock would run ahead of the import.
const leaseMs = leaseOf(15_000);

interface Case {
  /** Each series, and how much it changes. */
  moves: Record<string, number>;
  world?: Options;
  /** Ada has 1 in every world, unless stated otherwise. */
  poor?: true;
  happens(world: Awaited<ReturnType<typeof openMetered>>): Promise<unknown>;
}

const limits = (limits: Record<string, unknown>): Options => ({ project: { limits } });
const upstreamFault = (kind: string) => ({
  [`farebox_upstream_faults_total{kind="${kind}"}`]: 1,
  'farebox_chats_total{endpoint="chat",outcome="failed"}': 1,
});

const table: Record<string, Case> = {
  "an answer": {
    moves: {
      'farebox_requests_total{route="/v1/chat/completions",method="POST",status="2xx"}': 1,
      'farebox_request_seconds_count{route="/v1/chat/completions"}': 1,
      'farebox_chats_total{endpoint="chat",outcome="completed"}': 1,
      "farebox_chat_added_seconds_count": 1,
      'farebox_upstream_seconds_count{answer="whole"}': 1,
      'farebox_tokens_total{class="input"}': 10,
      'farebox_tokens_total{class="output"}': 5,
      'farebox_money_total{kind="usage",direction="out",currency="usd"}': 0.00002,
      'farebox_commits_total{outcome="landed"}': 2,
      "farebox_commit_seconds_count": 2,
      "farebox_commit_writes_count": 2,
    },
    happens: (world) => chat(world),
  },
  "a stream": {
    moves: {
      'farebox_chats_total{endpoint="chat",outcome="completed"}': 1,
      'farebox_upstream_seconds_count{answer="streamed"}': 1,
    },
    async happens(world) {
      world.upstream.once(() => sse([chunk({ content: "Hi" }), chunk({}, "stop")]));
      await (await chatStream(world)).text();
    },
  },
  "a stream that its caller leaves": {
    moves: {
      'farebox_chats_total{endpoint="chat",outcome="canceled"}': 1,
      'farebox_upstream_faults_total{kind="ended"}': 1,
    },
    async happens(world) {
      const fed = fedStream();
      world.upstream.once(() => fed.response);
      const reader = openReader(await chatStream(world));
      fed.send(chunk({ content: "Hi" }));
      await reader.read();
      await reader.leave();
      await world.app.running.idle();
    },
  },
  "an answer under a key that was used": {
    moves: { 'farebox_chats_total{endpoint="chat",outcome="replayed"}': 1 },
    async happens(world) {
      const headers = { "idempotency-key": "k" };
      for (const _ of [1, 2]) await chat(world, {}, { headers });
    },
  },
  "a chat that is no chat": {
    moves: { 'farebox_chats_total{endpoint="chat",outcome="refused"}': 1 },
    happens: (world) => chat(world, { messages: 1 }),
  },
  "a chat without money": {
    poor: true,
    moves: {
      'farebox_chats_total{endpoint="chat",outcome="paywalled"}': 1,
      'farebox_money_refusals_total{of="chat",reason="insufficient_funds"}': 1,
    },
    happens: (world) => chat(world),
  },
  "a charge without money": {
    moves: { 'farebox_money_refusals_total{of="charge",reason="insufficient_funds"}': 1 },
    happens: (world) => world.json("/v1/user/charge", { body: { user: "ada", amount: "2" } }),
  },
  "money in and out": {
    moves: {
      'farebox_money_total{kind="deposit",direction="in",currency="usd"}': 2.5,
      'farebox_money_total{kind="charge",direction="out",currency="usd"}': 3,
      'farebox_money_total{kind="refund",direction="out",currency="usd"}': 0.5,
      'farebox_shortfall_total{currency="usd"}': 2,
    },
    async happens(world) {
      const deposit = { user: "ada", amount: "2.5" };
      const { body } = await world.json("/v1/user/balance/deposit", { body: deposit });
      await world.json("/v1/user/charge", { body: { user: "ada", amount: "3" } });
      await world.json("/v1/user/refund", { body: { activityId: body.activityId } });
    },
  },
  "a user's first operation": {
    world: { project: { trialCredits: "3" } },
    moves: { 'farebox_money_total{kind="trial",direction="in",currency="usd"}': 3 },
    happens: (world) => chat(world, { user: "bob" }),
  },
  "more requests at once than the process takes": {
    world: { env: { REQUESTS_MAX: "1" } },
    moves: {
      'farebox_refusals_total{reason="overloaded"}': 1,
      'farebox_requests_total{route="/v1/user/balance",method="GET",status="5xx"}': 1,
    },
    happens: (world) => whileAnswering(world, () => world.call("/v1/user/balance?user=ada")),
  },
  "more requests a minute than a user may make": {
    world: limits({ user: { requestsPerMinute: 1 } }),
    moves: { 'farebox_refusals_total{reason="requests"}': 1 },
    happens: (world) => chat(world).then(() => chat(world)),
  },
  "more tokens a minute than a user may use": {
    world: limits({ user: { tokensPerMinute: 1 } }),
    moves: { 'farebox_refusals_total{reason="tokens"}': 1 },
    happens: (world) => chat(world).then(() => chat(world)),
  },
  "more answers at once than a user may have": {
    world: limits({ user: { concurrent: 1 } }),
    moves: { 'farebox_refusals_total{reason="concurrency"}': 1 },
    happens: (world) => whileAnswering(world, () => chat(world)),
  },
  "an upstream that refuses a request": {
    moves: upstreamFault("refused"),
    happens: (world) => answered(world, () => Response.json({}, { status: 400 })),
  },
  "an upstream that is asked too often": {
    moves: upstreamFault("rate_limited"),
    happens: (world) => answered(world, () => Response.json({}, { status: 429 })),
  },
  "an upstream that refuses the operator's key": {
    moves: upstreamFault("account"),
    happens: (world) => answered(world, () => Response.json({}, { status: 401 })),
  },
  "an upstream that fails": {
    moves: upstreamFault("failed"),
    happens: (world) => answered(world, () => new Response("", { status: 500 })),
  },
  "an upstream that answers with something else": {
    moves: upstreamFault("invalid"),
    happens: (world) => answered(world, () => new Response("<html>")),
  },
  "an upstream that is not there": {
    moves: upstreamFault("unreachable"),
    happens: (world) => answered(world, () => Promise.reject(new TypeError("refused"))),
  },
  "an upstream that is silent": {
    moves: upstreamFault("timeout"),
    async happens(world) {
      world.upstream.once(() => new Promise(() => {}));
      await until(world, chat(world), 60_000);
    },
  },
  "a stream that breaks off": {
    moves: { 'farebox_upstream_faults_total{kind="broken_off"}': 1 },
    async happens(world) {
      world.upstream.once(() => sse([chunk({ content: "Hi" })], { done: false }));
      await (await chatStream(world)).text();
    },
  },
  "a write that others had come before": {
    moves: {
      // Both together, and then only the first.
      'farebox_commits_total{outcome="refused"}': 1,
      "farebox_commit_retries_total": 1,
    },
    async happens({ deps: { committer }, store }) {
      const gate = Promise.withResolvers<void>();
      store.atomic = async (write, real) => {
        store.atomic = null;
        await gate.promise;
        return await real(write);
      };
      const set = (n: number, version?: string) => ({
        checks: version ? [{ key: ["row", n], version }] : [],
        sets: [{ key: ["row", n], value: new Uint8Array() }],
        deletes: [],
      });
      const writes = [set(1), set(2), set(3, "00000000000000000000")];
      const work = writes.map((write) => committer.commit(write));
      gate.resolve();
      await Promise.all(work);
    },
  },
  "a write whose answer is lost": {
    moves: {
      'farebox_commit_markers_total{outcome="landed"}': 1,
      'farebox_commits_total{outcome="landed"}': 1,
    },
    async happens(world) {
      world.store.atomic = async (write, real) => {
        world.store.atomic = null;
        await real(write);
        throw new TypeError("connection lost");
      };
      await world.deposit("ada", "1");
    },
  },
  "a store that is away": {
    moves: {
      'farebox_commit_markers_total{outcome="unknown"}': 1,
      'farebox_commits_total{outcome="failed"}': 1,
    },
    async happens(world) {
      world.store.atomic = () => Promise.reject(new TypeError("connection refused"));
      await world.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "1" } });
      world.store.atomic = null;
    },
  },
  "a delivery, at its second try": {
    moves: {
      'farebox_deliveries_total{outcome="retried"}': 1,
      'farebox_deliveries_total{outcome="delivered"}': 1,
      'farebox_delivery_attempts_total{result="5xx"}': 1,
      'farebox_delivery_attempts_total{result="2xx"}': 1,
      "farebox_delivery_attempt_seconds_count": 2,
    },
    async happens(world) {
      await subscribe(world);
      world.subscriber.reply(() => ({ status: 500 }));
      await world.deposit("ada", "1");
      await deliver(world);
      world.subscriber.reply(() => ({}));
      await retry(world);
    },
  },
  "a delivery that is refused for good": {
    moves: {
      'farebox_deliveries_total{outcome="errored"}': 1,
      'farebox_delivery_attempts_total{result="4xx"}': 1,
    },
    async happens(world) {
      await subscribe(world);
      world.subscriber.reply(() => ({ status: 410 }));
      await world.deposit("ada", "1");
      await deliver(world);
    },
  },
  "a delivery to an address that is not public": {
    moves: { 'farebox_delivery_attempts_total{result="blocked_address"}': 1 },
    async happens(world) {
      await subscribe(world);
      world.subscriber.names.set("hooks.example.com", ["10.0.0.1"]);
      await world.deposit("ada", "1");
      await deliver(world);
    },
  },
  "a delivery whose subscription has ended meanwhile": {
    moves: { 'farebox_deliveries_total{outcome="dropped"}': 1 },
    async happens(world) {
      const { id } = await subscribe(world);
      world.subscriber.reply(() => ({ status: 500 }));
      await world.deposit("ada", "1");
      await deliver(world);
      await world.json(`/v1/webhooks/subscriptions/${id}`, { method: "DELETE" });
      await retry(world);
    },
  },
  "a hold that its process left": {
    moves: {
      'farebox_repairs_total{what="hold_expired"}': 1,
      'farebox_money_total{kind="expired",direction="out",currency="usd"}': 0,
    },
    async happens(world) {
      const { deps } = world;
      using victim = await createWorld({ shareWith: world });
      victim.upstream.once(() => new Promise(() => {}));
      const lost = chat(victim);
      await settle();
      // Dead: its renewals are lost.
      victim.deps.kv.atomic = () => Promise.reject(new TypeError("dead"));
      victim.deps.kv.get = () => Promise.reject(new TypeError("dead"));
      await until(world, lost, 10_000);
      await deps.clock.sleep(0);
      await world.clock.advance(60_000);
      await world.app.sweep();
    },
  },
  "events that their process left": {
    moves: { 'farebox_repairs_total{what="outbox_row"}': 1 },
    async happens(world) {
      await subscribe(world);
      const store = createScriptedStore();
      using victim = await createWorld({ shareWith: world, wrapKv: store.wrap });
      // Dies directly after the deposit's own write.
      store.atomic = async (write, real) => {
        if (!write.sets.some(({ key }) => key[0] === "outbox")) throw new TypeError("dead");
        return await real(write);
      };
      await victim.deposit("ada", "1");
      await victim.app.dispatcher.idle();
      await world.clock.advance(outboxGraceMs + 1);
      await deliver(world);
    },
  },
  "a delivery that its process left": {
    moves: { 'farebox_repairs_total{what="lease"}': 1 },
    async happens(world) {
      await subscribe(world);
      const store = createScriptedStore();
      using victim = await createWorld({ shareWith: world, wrapKv: store.wrap });
      const gate = Promise.withResolvers<void>();
      world.subscriber.reply(() => gate.promise.then(() => ({})));
      await victim.deposit("ada", "1");
      await world.clock.advance(unwrittenMaxMs);
      store.dead = true;
      gate.resolve();
      await victim.app.dispatcher.idle();
      await world.clock.advance(leaseMs);
      await deliver(world);
    },
  },
  "rows that nothing else would take away": {
    moves: {
      'farebox_repairs_total{what="commit_marker"}': 2,
      'farebox_repairs_total{what="stray_row"}': 1,
    },
    async happens(world) {
      const { id } = await subscribe(world);
      const now = world.clock.now();
      const value = new TextEncoder().encode(world.projectId);
      const due = dueKey(id, now - 1_000, firstIdAt("dly", now - 1_000));
      const marker = commitMarkerKey(firstIdAt("batch", now));
      for (const key of [marker, due, readyKey(now - 1_000, id)]) await put(world, key, value);
      await deliver(world);
      await world.app.sweep();
      await world.clock.advance(11 * 60_000); // this process's own last marker is removed too
      await world.app.sweep();
    },
  },
  ...stripeCases,
  "a redelivery that is asked for": {
    moves: { 'farebox_repairs_total{what="redelivery"}': 1 },
    async happens(world) {
      const { id } = await subscribe(world);
      world.subscriber.reply(() => ({ status: 410 }));
      await world.deposit("ada", "1");
      await deliver(world);
      const since = new Date(world.clock.now() - 1_000).toISOString();
      await operate(world, `/subscriptions/${id}/redeliver`, { body: { since } });
      await settle();
    },
  },
};

async function answered(world: World, answer: () => Response | Promise<Response>) {
  world.upstream.once(answer);
  await chat(world);
}
for (const [what, { moves, world: options, poor, happens }] of Object.entries(table)) {
  Deno.test(`metrics: what changes with ${what}`, async () => {
    using world = await openMetered(options);
    if (!poor) await world.deposit("ada", "1");
    const before = await scrape(world);
    await happens(world);
    const after = await scrape(world);
    for (const [series, by] of Object.entries(moves)) {
      const moved = (after.series.get(series) ?? 0) - (before.series.get(series) ?? 0);
      assert.ok(after.series.has(series), series);
      assert.equal(Number(moved.toFixed(9)), by, series);
    }
  });
}

Deno.test("metrics: everything that is counted is in the table, or is read with the page", async () => {
  using world = await openMetered();
  const page = await scrape(world);
  const moved = Object.values(table).flatMap(({ moves }) => Object.keys(moves));
  const families = new Set(moved.map((series) => familyOf(page, series.replace(/\{.*/, ""))));
  for (const [family, type] of page.types) {
    // Attempts and caches are in target_metrics_test.ts, removed rows in store/removal_test.ts.
    if (type === "gauge" || /^process_cpu_|^farebox_(attempt|cache|rows_)/.test(family)) continue;
    assert.ok(families.has(family), `${family} has no case`);
  }
});
