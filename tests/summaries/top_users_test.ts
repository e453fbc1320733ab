import assert from "node:assert/strict";
import { formatAmount, fromDecimal, toAmount } from "../../src/base/money.ts";
import { emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import { accountKey, topUsersPrefix } from "../../src/store/keys.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { createTopUsers, readTopSpenders, readTopUsers } from "../../src/summaries/top_users.ts";
import { chat } from "../support/chat.ts";
import { forgetWholly, rowsNaming } from "../support/forget.ts";
import { mulberry32 } from "../support/random.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { createWorld, type World } from "../support/world.ts";

const hourMs = 3_600_000;

const charge = (world: World, user: string, amount: string) =>
  world.json("/v1/user/charge", { body: { user, amount } });

Deno.test("top users: an older observation of a user does not replace a newer one", async () => {
  using world = await createWorld();
  const { projectId, deps: { kv, committer } } = world;
  await world.deposit("ada", "1");
  const see = async (spent: string, requests: number) => {
    const top = createTopUsers({ kv, committer });
    const amount = fromDecimal(spent);
    const use = {
      ...{ month: "2026-01", requests, tokens: 1, spent: amount },
      ...{ day: "2026-01-01", daySpent: amount, hour: 490_896, hourSpent: amount },
    };
    top.observe(projectId, "ada", use);
    await top.flush();
    return (await readTopUsers(kv, projectId, "2026-01")).map((one) => one.requests);
  };
  assert.deepEqual([await see("3", 3), await see("2", 2), await see("3", 4)], [[3], [3], [4]]);
});

Deno.test("top users: the 100 who spent most this month, whichever process observed them", async () => {
  using first = await createWorld();
  using second = await createWorld({ shareWith: first });
  const names = Array.from({ length: 130 }, (_, n) => `user${n}`);
  for (const [n, user] of names.entries()) {
    const world = n % 2 === 0 ? first : second;
    await world.deposit(user, "1000");
    await charge(world, user, String(n + 1));
    if (n % 40 === 0) await first.app.sweep();
  }
  await second.app.flush();
  await charge(second, "user0", "500");
  await first.app.flush();
  await second.app.flush();
  const top = await readTopUsers(first.deps.kv, first.projectId, "2026-01");
  assert.equal(top.length, 100);
  assert.deepEqual(
    top.slice(0, 3).map(({ user, spent }) => [user, formatAmount(spent)]),
    [["user0", "501"], ["user129", "130"], ["user128", "129"]],
  );
  assert.equal(top.at(-1)?.user, "user31", "nobody who spent more was left out");
});

for (const isFirst of [true, false]) {
  const row = isFirst ? "the first row" : "a row";
  Deno.test(`top users: ${row} that is written late brings back no erased user`, async () => {
    const store = createScriptedStore();
    using late = await createWorld({ wrapKv: store.wrap });
    for (const user of ["ada", "bob"]) await late.deposit(user, "1");
    if (!isFirst) {
      await charge(late, "bob", "1");
      await late.app.flush();
    }
    await charge(late, "ada", "1");
    const [seen, forgotten] = [createGate(), createGate()];
    store.atomic = async (write, real) => {
      if (!write.sets.some(({ key }) => key[0] === "top_users")) return await real(write);
      seen.open();
      await forgotten.opened;
      return await real(write);
    };
    const flushed = late.app.flush();
    await seen.opened;
    using other = await createWorld({ shareWith: late });
    await forgetWholly(other, {}, "ada");
    forgotten.open();
    await flushed;
    const top = await readTopUsers(late.deps.kv, late.projectId, "2026-01");
    assert.deepEqual(top.map(({ user }) => user), isFirst ? [] : ["bob"]);
    assert.deepEqual(await rowsNaming(other, '"ada"'), []);
  });
}

Deno.test("top users: who spent most in any period, by hours and by days", async () => {
  using world = await createWorld();
  const { kv } = world.deps;
  const start = world.clock.now();
  const spend = async (user: string, amount: string) => {
    await world.deposit(user, amount);
    assert.equal((await charge(world, user, amount)).status, 200);
  };
  await spend("ada", "1");
  await spend("ada", "2");
  await spend("bob", "2");
  await world.clock.advance(hourMs);
  await spend("bob", "4");
  await world.clock.advance(23 * hourMs);
  await spend("ada", "8");
  await world.clock.advance(3 * 24 * hourMs);
  await spend("carl", "16");
  await world.app.flush();
  const read = async (from: number, to: number) => {
    const period = { from: start + from * hourMs, to: start + to * hourMs };
    const top = await readTopSpenders(kv, world.projectId, period);
    return top.map(({ user, spent }) => `${user} ${formatAmount(spent)}`).join(", ");
  };
  assert.equal(await read(0, 1), "ada 3, bob 2");
  assert.equal(await read(1, 2), "bob 4");
  assert.equal(await read(0, 2), "bob 6, ada 3");
  assert.equal(await read(0, 25), "ada 11, bob 6");
  assert.equal(await read(0, 72), "ada 11, bob 6", "whole days");
  assert.equal(await read(0, 5 * 24), "carl 16, ada 11, bob 6");
  assert.equal(await read(48, 96), "");
});

Deno.test("top users: over many days, each sum lies between its two bounds", async () => {
  using world = await createWorld();
  const start = world.clock.now();
  const random = mulberry32(7);
  const truth = new Map<string, bigint>();
  const topUsers = createTopUsers(world.deps);
  const [days, users] = [40, 1_000];
  for (let n = 0; n < users; n++) {
    const key = accountKey(world.projectId, `user-${n}`);
    await world.deps.committer.commit({
      ...emptyWrite(),
      sets: [{ key, value: encodeAccount(emptyAccount()) }],
    });
  }
  for (let day = 0; day < days; day++) {
    const at = start + day * 24 * hourMs;
    for (let n = 0; n < users; n++) {
      // A few spend evenly, others now and then.
      const daySpent = toAmount(BigInt(Math.floor(random() * (n < 100 ? 600 : 1_000))));
      if (n >= 100 && random() < 0.4) continue;
      truth.set(`user-${n}`, (truth.get(`user-${n}`) ?? 0n) + daySpent);
      const of = { requests: 0, tokens: 0, spent: daySpent, daySpent, hourSpent: daySpent };
      const time = new Date(at).toISOString();
      const when = { month: time.slice(0, 7), day: time.slice(0, 10), hour: at / hourMs };
      topUsers.observe(world.projectId, `user-${n}`, { ...of, ...when });
    }
    await topUsers.flush();
  }
  const top = await readTopSpenders(world.deps.kv, world.projectId, {
    from: start,
    to: start + days * 24 * hourMs,
  });
  assert.ok(top.length > 0);
  for (const { user, spent, atMost } of top) {
    const sum = truth.get(user) ?? 0n;
    assert.ok(spent <= sum && sum <= atMost, `${user}: ${spent} <= ${sum} <= ${atMost}`);
  }
});

Deno.test("top users: hours are kept for 100 days, days for 400, months forever", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await charge(world, "ada", "1");
  await world.app.flush();
  const periods = async () => {
    await world.app.sweep();
    const rows = await world.deps.kv.list({ prefix: topUsersPrefix(world.projectId), limit: 9 });
    return rows.map(({ key }) => key[2]);
  };
  assert.deepEqual(await periods(), ["2026-01", "d2026-01-01", "h2026-01-01T00"]);
  world.clock.set(102 * 24 * hourMs);
  assert.deepEqual(await periods(), ["2026-01", "d2026-01-01"]);
  world.clock.set(402 * 24 * hourMs);
  assert.deepEqual(await periods(), ["2026-01"]);
});

Deno.test("top users: a month starts at zero, and counts requests and tokens", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world);
  await world.clock.advance(31 * 24 * hourMs);
  await chat(world);
  await chat(world);
  await world.app.flush();
  const top = (month: string) => readTopUsers(world.deps.kv, world.projectId, month);
  const [january] = await top("2026-01");
  const [february] = await top("2026-02");
  assert.deepEqual([january?.requests, january?.tokens], [1, 15]);
  assert.deepEqual([february?.requests, february?.tokens], [2, 30]);
  assert.equal(formatAmount(february?.spent ?? 0n), "0.00004");
});
