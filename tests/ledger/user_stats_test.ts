import assert from "node:assert/strict";
import { formatAmount } from "../../src/base/money.ts";
import { liveUsersMax, readUserStats, type UserStats } from "../../src/ledger/user_stats.ts";
import { createWorld, type World } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;

async function statsOf(world: World): Promise<UserStats | null> {
  const { body } = await world.json(`/v1/admin/projects/${world.projectId}`, {
    key: world.deps.config.adminKey?.reveal() ?? "",
  });
  return await readUserStats(world.deps, body.project);
}

Deno.test("user statistics: a few users are read as of now, with what is owed and who is active", async () => {
  using world = await createWorld({ project: { lowBalance: "1" } });
  await world.deposit("ada", "5");
  await world.clock.advance(8 * dayMs);
  await world.deposit("bob", "0.25");
  const stats = await statsOf(world) ?? assert.fail("they are few");
  assert.equal(stats.users, 2);
  assert.equal(formatAmount(stats.owed), "5.25");
  assert.deepEqual(stats.active, { 1: 1, 7: 1, 30: 2, 90: 2 });
  assert.equal(stats.runningLow, 1);
  assert.deepEqual(stats.first.low.map(({ user }) => user), ["bob", "ada"]);
});

Deno.test("user statistics: many users are read by the sweep", async () => {
  using world = await createWorld();
  const users = Array.from({ length: liveUsersMax + 600 }, (_, n) => `user-${n}`);
  for (let at = 0; at < users.length; at += 100) {
    await Promise.all(users.slice(at, at + 100).map((user, n) => world.deposit(user, `${n + 1}`)));
  }
  assert.equal(await statsOf(world), null, "no sweep has read them");
  await world.app.sweep();
  const stats = await statsOf(world) ?? assert.fail("the sweep has read them");
  assert.equal(stats.users, users.length);
  assert.equal(formatAmount(stats.owed), String((users.length / 100) * 5_050));
  assert.deepEqual(stats.first.balance.slice(0, 2).map(({ balance }) => formatAmount(balance)), [
    "100",
    "100",
  ]);
});
