import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type TargetAttempt,
  TargetBreaker,
  type TargetFailure,
} from "../../src/upstreams/target_breaker.ts";
import { always } from "../support/property.ts";

const plain: TargetFailure = { retryAfterMs: null, chance: 0.5 };

/** Begins an attempt that must be allowed. */
function begun(breaker: TargetBreaker, now: number): TargetAttempt {
  const attempt = breaker.begin(now);
  assert(attempt);
  return attempt;
}

function failAt(breaker: TargetBreaker, now: number, failure = plain): boolean {
  return breaker.fail(begun(breaker, now), failure, now);
}

/** A breaker that has just opened at 0, for 5 s. */
function opened(): TargetBreaker {
  const breaker = new TargetBreaker();
  for (let count = 0; count < 5; count++) failAt(breaker, 0);
  assert.equal(breaker.openUntil, 5_000);
  return breaker;
}

Deno.test("it opens at the fifth failure in a row within a minute", () => {
  const breaker = new TargetBreaker();
  for (const at of [0, 10_000, 20_000, 30_000]) assert.equal(failAt(breaker, at), false);
  assert.equal(breaker.failures(30_000), 4);
  assert.equal(failAt(breaker, 59_999), true);
  assert.equal(breaker.state(59_999), "open");
});

Deno.test("older failures and those before a success do not count", () => {
  const slow = new TargetBreaker();
  for (let at = 0; at < 20; at++) assert.equal(failAt(slow, at * 15_000), false);
  const mixed = new TargetBreaker();
  for (let round = 0; round < 10; round++) {
    for (let count = 0; count < 4; count++) assert.equal(failAt(mixed, round), false);
    mixed.succeed();
  }
  assert.equal(mixed.state(10), "closed");
});

Deno.test("a Retry-After opens it at once, never for less, and at most for 5 minutes and 20 %", () => {
  for (
    const [retryAfterMs, chance, openMs] of [
      [30_000, 0, 30_000],
      [30_000, 0.5, 33_000],
      [1_000, 0.5, 5_000],
      [0, 0, 4_000],
      [-1, 0.5, 5_000],
      [NaN, 0.5, 5_000],
      [Infinity, 0.5, 330_000],
      [86_400_000, 0, 300_000],
    ] as const
  ) {
    const breaker = new TargetBreaker();
    assert.equal(failAt(breaker, 7, { retryAfterMs, chance }), true);
    assert.equal(breaker.openUntil, 7 + openMs, `${retryAfterMs}`);
  }
});

Deno.test("each failed probe opens it for twice as long, up to a minute; a success resets that", () => {
  const breaker = opened();
  let now = 5_000;
  for (const openMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
    assert.equal(breaker.state(now), "half_open");
    assert.equal(failAt(breaker, now), true);
    assert.equal(breaker.openUntil, now + openMs);
    now += openMs;
  }
  assert.equal(breaker.answer(begun(breaker, now), now + 1), true);
  assert.equal(breaker.state(now + 1), "closed");
  for (let count = 0; count < 5; count++) failAt(breaker, now + 2);
  assert.equal(breaker.openUntil, now + 2 + 5_000);
});

Deno.test("its time varies by 20 % with the chance that it is given", () => {
  for (const [chance, openMs] of [[0, 4_000], [0.5, 5_000], [0.999999, 6_000]] as const) {
    const breaker = new TargetBreaker();
    for (let count = 0; count < 5; count++) failAt(breaker, 0, { ...plain, chance });
    assert.equal(Math.round(breaker.openUntil ?? 0), openMs);
  }
});

Deno.test("half-open, one probe goes at a time, and one that ends without a result frees it", () => {
  const breaker = opened();
  const probe = begun(breaker, 5_000);
  assert.equal(breaker.begin(5_000), null);
  assert.equal(breaker.isReady(5_000), false);
  breaker.end({ beganAt: 5_000 });
  assert.equal(breaker.begin(5_001), null, "another attempt frees nothing");
  breaker.end(probe);
  assert.equal(breaker.isReady(5_001), true);
  begun(breaker, 5_001);
});

Deno.test("a probe whose end is never reported is forgotten after two minutes", () => {
  const breaker = opened();
  begun(breaker, 5_000);
  assert.equal(breaker.begin(124_999), null);
  begun(breaker, 125_000);
});

Deno.test("attempts that began before it opened neither close it, nor open it again", () => {
  const breaker = new TargetBreaker();
  const before = begun(breaker, -1);
  for (let count = 0; count < 5; count++) failAt(breaker, 0);
  assert.equal(breaker.answer(before, 1), false);
  assert.equal(breaker.fail(before, plain, 1), false);
  assert.equal(breaker.openUntil, 5_000);
  const probe = begun(breaker, 5_000);
  assert.equal(breaker.fail(before, plain, 5_001), false);
  assert.equal(breaker.begin(5_002), null, "the probe is still the probe");
  assert.equal(breaker.answer(probe, 5_003), true);
  for (let count = 0; count < 5; count++) breaker.fail(before, plain, 5_004);
  assert.equal(breaker.state(5_004), "closed");
});

Deno.test("a success while it is open, where nothing else was left, closes it", () => {
  const breaker = opened();
  assert.equal(breaker.isReady(1_000), false);
  assert.equal(breaker.answer(begun(breaker, 1_000), 1_001), true);
  assert.equal(breaker.isReady(1_001), true);
});

Deno.test("whatever happens, at most one probe is under way, and an open time is bounded", () =>
  always(
    500,
    fc.property(
      fc.array(fc.tuple(
        fc.constantFrom("begin", "succeed", "fail", "retry", "end", "adopt", "close"),
        fc.nat(30_000),
        fc.nat(9),
      )),
      (steps) => {
        const breaker = new TargetBreaker();
        const attempts: TargetAttempt[] = [];
        const probes = new Set<TargetAttempt>();
        let now = 0;
        for (const [step, ms, which] of steps) {
          now += ms;
          const attempt = attempts.at(which % (attempts.length || 1));
          const before = breaker.openUntil;
          if (step === "begin") {
            const isProbe = breaker.state(now) === "half_open";
            const begun = breaker.begin(now);
            if (begun) attempts.push(begun);
            if (!begun || !isProbe) continue;
            for (const { beganAt } of probes) assert(now - beganAt >= 120_000);
            probes.add(begun);
          } else if (step === "adopt") breaker.open(now + 1, now);
          else if (step === "close") breaker.close(now);
          else if (attempt) {
            if (step === "end") breaker.end(attempt);
            else if (step === "succeed") breaker.answer(attempt, now);
            else {
              const retryAfterMs = step === "retry" ? 10 * ms : null;
              breaker.fail(attempt, { retryAfterMs, chance: 0.9 }, now);
            }
            attempts.splice(attempts.indexOf(attempt), 1);
            probes.delete(attempt);
          }
          if (breaker.openUntil !== before || step === "adopt") probes.clear();
          assert((breaker.openUntil ?? 0) - now <= 360_000);
        }
      },
    ),
  ));
