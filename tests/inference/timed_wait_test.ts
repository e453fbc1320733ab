import assert from "node:assert/strict";
import { TimedWait } from "../../src/base/timed_wait.ts";
import { createHandClock } from "../support/clock.ts";

Deno.test("timed wait: what arrives in time is the result, and leaves no timer behind", async () => {
  const clock = createHandClock();
  const patience = new TimedWait<string>(clock);
  assert.equal(await patience.wait(Promise.resolve("a piece"), 1_000), "a piece");
  await assert.rejects(patience.wait(Promise.reject(new Error("broken")), 1_000), /broken/);
  patience.end();
  assert.equal(clock.waiting, 0);
});

Deno.test("timed wait: each wait has its full time, whatever fires for earlier ones", async () => {
  const clock = createHandClock();
  const patience = new TimedWait<string>(clock);
  await patience.wait(Promise.resolve("first"), 1_000);
  await clock.advance(600);
  const startedAt = clock.elapsed();
  const second = patience.wait(new Promise(() => {}), 1_000).then(() => clock.elapsed());
  await clock.advance(5_000);
  assert.equal((await second) - startedAt, 1_000);
});

Deno.test("timed wait: a shorter wait ends before the timer of a longer one fires", async () => {
  const clock = createHandClock();
  const patience = new TimedWait<string>(clock);
  await patience.wait(Promise.resolve("first"), 10_000);
  const second = patience.wait(new Promise(() => {}), 500).then(() => clock.elapsed());
  await clock.advance(20_000);
  assert.equal(await second, 500);
  assert.equal(clock.waiting, 0);
});

Deno.test("timed wait: what arrives after its timeout is available to the next wait", async () => {
  const clock = createHandClock();
  const patience = new TimedWait<string>(clock);
  const work = Promise.withResolvers<string>();
  const given = patience.wait(work.promise, 100);
  await clock.advance(100);
  assert.equal(await given, "timeout");
  work.resolve("timeout");
  await clock.advance(0);
  assert.equal(await patience.wait(work.promise, 100), "timeout");
});
