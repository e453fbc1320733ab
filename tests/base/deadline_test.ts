import assert from "node:assert/strict";
import { withDeadline } from "../../src/base/deadline.ts";

Deno.test("deadline: work that ends in time leaves no timer behind, and other work is reported as late", async () => {
  const timers: (() => void)[] = [];
  const timer = {
    after(_ms: number, work: () => void) {
      timers.push(work);
      return () => void timers.splice(timers.indexOf(work), 1);
    },
  };
  const bound = { ms: 10, late: () => new Error("late") };
  assert.equal(await withDeadline(timer, Promise.resolve("done"), bound), "done");
  await assert.rejects(withDeadline(timer, Promise.reject(new Error("failed")), bound), /failed/);
  assert.equal(timers.length, 0);
  const late = withDeadline(timer, new Promise(() => {}), bound);
  timers[0]?.();
  await assert.rejects(late, /late/);
});
