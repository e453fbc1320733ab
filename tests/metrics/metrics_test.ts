import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { outboxGraceMs } from "../../src/webhooks/delivery/fan_out.ts";
import { chat } from "../support/chat.ts";
import { metricsToken, openMetered, scrape, whileAnswering } from "../support/prometheus.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

// Loaded once: a hand-moved clock would run ahead of the import.
await loadTokenizer();

Deno.test("metrics: work under way is read with the page", async () => {
  using world = await openMetered();
  await world.deposit("ada", "1");
  await subscribe(world);
  await whileAnswering(world, async () => {
    await world.clock.advance(15_000);
    await world.app.sweep();
    const { series } = await scrape(world);
    assert.equal(series.get("farebox_answers_running"), 1);
    assert.equal(series.get("farebox_requests_under_way"), 1, "and not this one");
    assert.equal(series.get("farebox_holds_open"), 1);
    assert.equal(series.get("farebox_hold_oldest_seconds"), 15);
    assert.equal(series.get("farebox_deliveries_running"), 0);
  });
  await world.app.sweep();
  const { series } = await scrape(world);
  assert.equal(series.get("farebox_answers_running"), 0);
  assert.equal(series.get("farebox_holds_open"), 0);
  assert.equal(series.get("farebox_hold_oldest_seconds"), 0);
  assert.equal(series.get("process_resident_memory_bytes"), 100e6);
  assert.equal(series.get('farebox_build_info{deno="2.9.6",v8="14.0"}'), 1);
});

Deno.test("metrics: the backlog is counted in the store, at most every ten seconds", async () => {
  using world = await openMetered();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 503 }));
  for (let n = 0; n < 3; n++) await world.deposit("ada", "1");
  await deliver(world);
  const due = async () => (await scrape(world)).series.get("farebox_deliveries_due");
  assert.equal(await due(), 0, "their next tries are not due yet");
  await world.clock.advance(60_000);
  assert.equal(await due(), 3);
  const { series } = await scrape(world);
  const oldest = series.get("farebox_delivery_due_oldest_seconds") ?? 0;
  assert.ok(oldest > 20 && oldest < 70, `${oldest}`);
  world.subscriber.reply(() => ({}));
  await deliver(world);
  assert.equal(await due(), 3, "looked at a moment ago");
  await world.clock.advance(10_000);
  await deliver(world);
  assert.equal(await due(), 0);
});

Deno.test("metrics: events that no process has taken are counted", async () => {
  using world = await openMetered();
  await subscribe(world);
  world.store.atomic = async (write, real) => {
    if (!write.sets.some(({ key }) => key[0] === "outbox")) throw new TypeError("dead");
    return await real(write);
  };
  await world.deposit("ada", "1");
  await world.app.dispatcher.idle();
  await world.clock.advance(outboxGraceMs + 1);
  assert.equal((await scrape(world)).series.get("farebox_events_waiting"), 1);
});

Deno.test("metrics: without its store the page reports that, and is still served", async () => {
  using world = await openMetered();
  world.store.dead = true;
  const { series } = await scrape(world);
  assert.ok(Number.isNaN(series.get("farebox_deliveries_due")));
  assert.equal(series.get("farebox_answers_running"), 0);
});

Deno.test("metrics: values that callers choose create no series", async () => {
  using world = await openMetered();
  await world.deposit("ada", "1");
  await chat(world);
  const seen = async () => [...(await scrape(world)).series.keys()].length;
  const odd = async (n: number) => {
    await world.call(`/nowhere/${n}`);
    await world.call(`/nowhere/${n}`, { method: `ODD${n}`, key: null });
    await world.call(`/v1/user${n}/chat/completions`, { method: "PUT" });
    await world.call(`/v1/models/model-${n}`);
    await world.call(`/topup/token${n}`);
    await chat(world, { model: `model-${n}`, user: `user-${n}` });
    await chat(world, { user: `user-${n}` });
  };
  await odd(0);
  // The metrics page counts itself from its second request on.
  await seen();
  const before = await seen();
  for (let n = 1; n <= 1_000; n++) await odd(n);
  assert.equal(await seen(), before);
});

Deno.test("metrics: they require their token", async () => {
  using world = await openMetered();
  const status = async (key: string | null) => (await world.json("/metrics", { key })).status;
  for (const key of [null, "", world.apiKey, `${metricsToken}x`, metricsToken.slice(1)]) {
    assert.equal(await status(key), 401, `${key}`);
  }
  const { body, response } = await world.json("/metrics", { key: "wrong" });
  assert.equal(body.error.code, "invalid_api_key");
  assert.equal(response.headers.get("www-authenticate"), "Bearer");
});

Deno.test("metrics: without METRICS_TOKEN they are disabled", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/metrics", { key: metricsToken });
  assert.equal(status, 404);
  assert.match(body.error.message, /METRICS_TOKEN/);
});

Deno.test("metrics: an overloaded process still serves them", async () => {
  using world = await openMetered({ env: { REQUESTS_MAX: "1" } });
  await world.deposit("ada", "1");
  await whileAnswering(world, () => scrape(world));
});
