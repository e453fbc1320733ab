import assert from "node:assert/strict";
import { runAtOnce, runInSlices, type Steps } from "../../src/base/steps.ts";
import { TimeSlice } from "../../src/base/time_slice.ts";
import { createHandClock } from "../support/clock.ts";

function* count(to: number, onStep: () => void): Steps<number> {
  for (let at = 0; at < to; at++) {
    onStep();
    yield;
  }
  return to;
}

Deno.test("steps: done at once, they give their result", () => {
  let steps = 0;
  assert.equal(runAtOnce(count(5, () => steps++)), 5);
  assert.equal(steps, 5);
});

Deno.test("steps: in slices, other requests run whenever a slice is used up", async () => {
  const clock = createHandClock();
  let slept = 0;
  let elapsed = 0;
  const slow = {
    ...clock,
    elapsed: () => elapsed,
    sleep: () => {
      slept++;
      return Promise.resolve();
    },
  };
  // Each step takes two milliseconds of a slice of five.
  const result = await runInSlices(count(30, () => elapsed += 2), new TimeSlice(slow));
  assert.equal(result, 30);
  assert.equal(slept, 10);
});
