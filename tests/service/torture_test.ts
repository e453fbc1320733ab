import assert from "node:assert/strict";
import { torture } from "../support/torture.ts";

Deno.test("torture: kills under a mixed load lose nothing, and record nothing twice", async () => {
  const outcome = await torture({
    seconds: 6,
    seed: Date.now(),
    lifeMaxMs: 2_500,
  });
  const { lost, duplicates, eventsLost, faults, acknowledged, kills, entries } = outcome;
  console.log(outcome);
  assert.deepEqual({ lost, duplicates, eventsLost, faults }, {
    lost: 0,
    duplicates: 0,
    eventsLost: 0,
    faults: [],
  });
  assert.ok(kills > 0 && acknowledged > 0 && entries >= acknowledged);
});
