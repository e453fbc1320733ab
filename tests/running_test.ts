import assert from "node:assert/strict";
import { createRunning, type RunningAnswer } from "../src/chat/running.ts";
import type { ApiError } from "../src/base/errors.ts";
import { answerLifetimeMs } from "../src/base/limits.ts";
import { zero } from "../src/base/money.ts";
import type { Holds } from "../src/ledger/hold.ts";
import { createHandClock } from "./support/clock.ts";

const never = () => Promise.reject(new Error("not asked for here"));

/** An answer that goes on, and why it was cut. */
function watched(renew: Holds["renew"]) {
  const clock = createHandClock();
  const cuts: ApiError[] = [];
  const holds = { place: never, settle: never, release: never, renew };
  const answer: RunningAnswer = {
    ref: { projectId: "pw_1", user: "ada" },
    id: "req_1",
    requestId: "r",
    model: "m",
    used: () => Promise.resolve({ input: 0, output: 0, cost: zero }),
    cut: (reason) => void cuts.push(reason),
  };
  const end = createRunning({ clock, log() {} }, holds).add(answer);
  return { clock, cuts, end };
}

Deno.test("running: an answer is cut after an hour, and told that it took too long", async () => {
  const { clock, cuts, end } = watched(() => Promise.resolve(true));
  await clock.advance(answerLifetimeMs);
  assert.equal(cuts.length, 0);
  await clock.advance(10_000);
  end();
  assert.deepEqual([cuts[0]?.code, cuts[0]?.message], [
    "answer_too_long",
    "The answer was ended: it took longer than an answer may take.",
  ]);
});

for (
  const [name, renew, code] of [
    ["is gone", () => Promise.resolve(false), "hold_lost"],
    ["cannot be renewed", never, "hold_not_renewed"],
  ] as const
) {
  Deno.test(`running: an answer whose hold ${name} is cut before it would have ended`, async () => {
    const { clock, cuts, end } = watched(renew);
    await clock.advance(55_000);
    end();
    assert.equal(cuts[0]?.code, code);
  });
}
