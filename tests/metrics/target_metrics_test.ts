import assert from "node:assert/strict";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { chat } from "../support/chat.ts";
import { metricsToken, scrape } from "../support/prometheus.ts";
import { routedProject } from "../support/targets.ts";
import { completion } from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";

Deno.test("metrics of upstreams: attempts, first token and cost, also of failed attempts", async () => {
  using world = await createWorld({
    env: { METRICS_TOKEN: metricsToken },
    project: routedProject,
  });
  await world.deposit("ada", "1");
  world.upstream.once(() => new Response("", { status: 500 }));
  world.upstream.reply(() => completion({ model: "gpt-4o" }));
  const { response } = await chat(world, { model: "gpt-4o" });
  assert.equal(response.headers.get("x-service-upstream"), "spare");
  const { series } = await scrape(world);
  for (
    const [name, value] of Object.entries({
      'farebox_attempts_total{upstream="main",outcome="failed"}': 1,
      'farebox_attempts_total{upstream="main",outcome="answered"}': 0,
      'farebox_attempts_total{upstream="spare",outcome="answered"}': 1,
      'farebox_attempt_first_token_seconds_count{upstream="spare"}': 1,
      // 10 tokens at 2.5 a million, and 5 at 10.
      'farebox_attempts_cost_total{upstream="spare",currency="usd"}': 0.000075,
    })
  ) assert.equal(series.get(name), value, name);
  const asked = world.logged.filter(({ event }) => event === "attempt_failed");
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.upstream, "main");
  const request = world.logged.find(({ event, upstream }) => event === "request" && upstream);
  assert.deepEqual([request?.upstream, request?.attempts], ["spare", 2]);
});

Deno.test("metrics of upstreams: beyond 200 names, others are counted together", () => {
  const { target } = createMetrics();
  const meters = Array.from({ length: 300 }, (_, index) => target(`u${index}`));
  assert.equal(new Set(meters).size, 201);
  assert.equal(target("u299"), target("u298"));
  assert.notEqual(target("u1"), target("u2"));
});

Deno.test("metrics of the response cache: lookups by their outcome", async () => {
  using world = await createWorld({
    env: { METRICS_TOKEN: metricsToken },
    project: { responseCache: { enabled: true } },
  });
  await world.deposit("ada", "1");
  for (const _ of [1, 2, 3]) await chat(world);
  const { series } = await scrape(world);
  assert.equal(series.get('farebox_cache_lookups_total{outcome="miss"}'), 1);
  assert.equal(series.get('farebox_cache_lookups_total{outcome="hit"}'), 2);
});
