import assert from "node:assert/strict";
import { RateTable } from "../../src/base/rate_table.ts";

Deno.test("rate table: takes, gives back and moves on, each name its own", () => {
  let now = 1_000;
  const table = new RateTable(() => now);
  assert.ok(table.isEmpty);
  assert.equal(table.take("ada", { count: 15, limit: 60 }), 15_000);
  assert.equal(table.state("ada", 60).remaining, 45);
  assert.equal(table.state("bob", 60).remaining, 60);
  table.take("ada", { count: -5, limit: 60 });
  assert.equal(table.state("ada", 60).remaining, 50);
  table.move("ada", 55_000);
  assert.deepEqual(table.state("ada", 60), {
    limit: 60,
    remaining: 0,
    resetMs: 65_000,
    waitMs: 6_000,
  });
  now += 65_000;
  assert.equal(table.state("ada", 60).remaining, 60);
});

Deno.test("rate table: of too many names, idle ones are forgotten before one that is used up", () => {
  let now = 0;
  const table = new RateTable(() => now, 100);
  table.take("used up", { count: 1, limit: 1 });
  for (let n = 1; n < 100; n++) table.take(`idle ${n}`, { count: 1, limit: 60_000 });
  now = 2_000;
  table.take("new", { count: 1, limit: 60_000 });
  assert.equal(table.state("used up", 1).remaining, 0);
  for (let n = 0; n < 100; n++) table.take(`busy ${n}`, { count: 60, limit: 60 });
  assert.equal(table.state("used up", 1).remaining, 1, "all are busy: the oldest starts anew");
  assert.equal(table.state("busy 99", 60).remaining, 0);
});
