import assert from "node:assert/strict";
import { createRunningCalls, type RunningCall } from "../../src/inference/running.ts";
import type { ApiError } from "../../src/base/errors.ts";
import { answerLifetimeMs } from "../../src/base/limits.ts";
import { zero } from "../../src/base/money.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { Holds } from "../../src/ledger/hold.ts";

const never = () => Promise.reject(new Error("not asked for here"));

/** A response that continues, and the reason why it was cut. */
function watched(renew: Holds["renew"]) {
  let now = 0;
  let due: { at: number; work: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    elapsed: () => now,
    sleep: never,
    after(ms, work) {
      due.push({ at: now + ms, work });
      return () => {};
    },
  };
  // An hour in small steps: a world's clock does its work in each.
  async function advance(ms: number): Promise<void> {
    for (const end = now + ms; now < end; now += 1_000) {
      const works = due.filter(({ at }) => at <= now);
      due = due.filter(({ at }) => at > now);
      for (const { work } of works) work();
      for (let turn = 0; turn < 5; turn++) await null;
    }
  }
  const cuts: ApiError[] = [];
  const holds = { place: never, settle: never, release: never, renew };
  const answer: RunningCall = {
    ref: { projectId: "pw_1", user: "ada" },
    id: "req_1",
    requestId: "r",
    model: "m",
    used: () => Promise.resolve({ input: 0, output: 0, cost: zero }),
    cut: (reason) => void cuts.push(reason),
  };
  const end = createRunningCalls({ clock, log() {} }, holds).add(answer);
  return { advance, cuts, end };
}

Deno.test("running: a response is cut after an hour, and reports that it took too long", async () => {
  const { advance, cuts, end } = watched(() => Promise.resolve(true));
  await advance(answerLifetimeMs);
  assert.equal(cuts.length, 0);
  await advance(10_000);
  end();
  assert.deepEqual([cuts[0]?.code, cuts[0]?.message], [
    "answer_too_long",
    "The response was ended: it took longer than a response may take.",
  ]);
});

for (
  const [name, renew, code] of [
    ["is gone", () => Promise.resolve(false), "hold_lost"],
    ["cannot be renewed", never, "hold_not_renewed"],
  ] as const
) {
  Deno.test(`running: a call whose hold ${name} is cut before it would have ended`, async () => {
    const { advance, cuts, end } = watched(renew);
    await advance(58_000);
    end();
    assert.equal(cuts[0]?.code, code);
  });
}
