import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { nextCheck } from "../support/alerts.ts";
import { chat, chatStream, openReader } from "../support/chat.ts";
import { signedIn, textOf } from "../support/console.ts";
import { chunk, completion, fedStream, usage } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, testPricing, type World } from "../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

// GLOSSARY.md says what a request, a call, a refused, failed, canceled and repeated one is. Every
// place that counts them counts the same.

const models = {
  ...testPricing.models,
  "bad-model": { input: "1", output: "2" },
};

async function summaryOf(world: World): Promise<Body> {
  await world.app.flush();
  const path = `/v1/admin/projects/${world.projectId}/summary`;
  return (await world.json(path, { key: adminKey })).body;
}

const countsOf = ({ requests, calls, failed, canceled, refused, repeated }: Body) => ({
  ...{ requests, calls, failed, canceled, refused, repeated },
});

/** Requests of every ending: 2 completed, 4 failed, 1 canceled, 6 refused, 2 repeated. */
async function everyEnding(world: World): Promise<void> {
  await world.deposit("ada", "5");
  world.upstream.reply(({ body }) =>
    body.model === "bad-model"
      ? Response.json({ error: { message: "down" } }, { status: 500 })
      : completion({ model: body.model, usage: usage(1_000, 100) })
  );
  // Two complete; two are answered again, from the cache and under a key.
  const keyed = { headers: { "idempotency-key": "k-1" } };
  for (let n = 0; n < 2; n++) await chat(world, { model: "test-model", max_tokens: 20 + n });
  for (let n = 0; n < 2; n++) await chat(world, { model: "test-model", max_tokens: 20 }, keyed);
  for (let n = 0; n < 4; n++) await chat(world, { model: "bad-model" });
  // Refused: for want of money, as wrong, and for a model that has no price.
  for (let n = 0; n < 4; n++) await chat(world, { model: "bad-model", user: "poor" });
  await chat(world, { model: "test-model", messages: "none" });
  await chat(world, { model: "no-model" });
  // A refused charge is no request.
  await world.json("/v1/user/charge", { body: { user: "poor", amount: "1" } });
  const source = fedStream();
  world.upstream.once(() => source.response);
  source.send(chunk({ content: "Hello" }));
  const reader = openReader(await chatStream(world, { model: "test-model", max_tokens: 100 }));
  await reader.read();
  await reader.leave();
  await source.cancelled;
  await world.app.running.idle();
}

const cached = { enabled: true, maxAgeSeconds: 600, costFactor: "0.5" };
const all = { requests: 15, calls: 7, failed: 4, canceled: 1, refused: 6, repeated: 2 };
const ofGood = { requests: 5, calls: 3, failed: 0, canceled: 1, refused: 0, repeated: 2 };
const ofBad = { requests: 8, calls: 4, failed: 4, canceled: 0, refused: 4, repeated: 0 };

Deno.test("requests: summary, models, key, log, pages and metrics count the same", async () => {
  using world = await createWorld({ project: { pricing: { models }, responseCache: cached } });
  await everyEnding(world);
  const summary = await summaryOf(world);
  assert.deepEqual(countsOf(summary.totals), all);
  assert.deepEqual(countsOf(summary.hours[0].totals), all);
  const shown = Object.fromEntries(summary.models.map((row: Body) => [row.model, countsOf(row)]));
  assert.deepEqual(shown, { "test-model": ofGood, "bad-model": ofBad });
  const sum = (counts: { count: number }[]) => counts.reduce((n, { count }) => n + count, 0);
  assert.deepEqual([sum(summary.refusals), sum(summary.failures)], [all.refused, all.failed]);
  assert.deepEqual(summary.refusedCharges, [{ reason: "insufficient_funds", count: 1 }]);
  const log = `/v1/admin/projects/${world.projectId}/requests?limit=100`;
  const { requests } = (await world.json(log, { key: adminKey })).body;
  assert.equal(sum(requests), all.requests, "the log has them all");
  const { completed, failed, canceled, hit, paywalled, replayed, refused } =
    world.deps.metrics.chats.chat;
  assert.deepEqual([completed, failed, canceled].map(({ value }) => value), [2, 4, 1]);
  assert.deepEqual([hit.value + replayed.value, paywalled.value + refused.value], [2, 6]);
  const owner = await signedIn(world);
  const page = textOf((await owner.get("")).html);
  assert.match(page, /Requests 15 .*Calls 7 .*Failed 4 57\.1 % of calls.*Refused 6 /);
  assert.match(page, /bad-model 8 4 100\.0 %/);
  const key = summary && (await operate(world, "/keys", { method: "GET" })).body.keys[0].id;
  const ofKey = textOf((await owner.get(`?key=${key}`)).html);
  assert.match(ofKey, /Requests 15 .*Calls 7 .*Failed 4 57\.1 % of calls.*Refused 6 40 %/);
  const ofModel = textOf((await owner.get("?model=bad-model")).html);
  assert.match(ofModel, /Requests 8 .*Calls 4 .*Failed 4 100 % of calls.*Refused 4 50 %/);
});

Deno.test("requests: neither refused nor repeated ones hide an outage from the alert", async () => {
  const alerts = { errorRate: { percent: 90, calls: 4 } };
  const project = { pricing: { models }, responseCache: cached, alerts };
  using world = await createWorld({ project });
  await world.deposit("ada", "5");
  await chat(world, { model: "bad-model" });
  for (let n = 0; n < 20; n++) await chat(world, { model: "bad-model" });
  for (let n = 0; n < 6; n++) await chat(world, { model: "bad-model", user: "poor" });
  world.upstream.reply(() => Response.json({ error: { message: "down" } }, { status: 500 }));
  await world.clock.advance(2 * 60 * 60 * 1000);
  for (let n = 0; n < 4; n++) await chat(world, { model: "bad-model", max_tokens: 3 + n });
  for (let n = 0; n < 6; n++) await chat(world, { model: "bad-model", user: "poor" });
  await world.app.flush();
  await nextCheck(world);
  const { body } = await operate(world, "/alerts", { method: "GET" });
  assert.deepEqual(body.alerts.map(({ summary }: Body) => summary), [
    "100 % of 4 calls of bad-model failed.",
  ]);
  const [line] = textOf((await (await signedIn(world)).get("")).html)
    .match(/\d+ % of the calls of bad-model failed/) ?? [];
  assert.equal(line, undefined, "21 of the day's 25 calls were answered or repeated");
});
