import assert from "node:assert/strict";
import type { Entry } from "../../src/ledger/entry.ts";
import { accountKey, entryKey, verifiedKey } from "../../src/store/keys.ts";
import { chat, usageOf } from "../support/chat.ts";
import { forgetWholly } from "../support/forget.ts";
import { edit, makeBusy, move, put, remove, verify } from "../support/verify.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const editEntry = (world: World, id: string, change: (entry: Entry) => Partial<Entry>) =>
  edit<Entry>(world, entryKey(world.projectId, id), (entry) => ({ ...entry, ...change(entry) }));

const deposit = (world: World, user: string) =>
  move(world, "/v1/user/balance/deposit", { user, amount: "1" });

Deno.test("verify since: reads what came after the marks, and finds a fault in it", async () => {
  using world = await createWorld();
  await makeBusy(world);
  const whole = await verify(world);
  assert.deepEqual([whole.faults, whole.checked.entries], [[], 9]);
  const nothingNew = await verify(world, "since=true");
  assert.deepEqual(nothingNew.faults, []);
  assert.equal(nothingNew.checked.entries, 2, "the last entry of each account");
  const first = await deposit(world, "ada");
  await deposit(world, "ada");
  assert.equal((await verify(world, "since=true")).checked.entries, 4);
  await editEntry(world, first, () => ({ delta: "2" }));
  assert.deepEqual((await verify(world, "since=true")).faults, [], "it was before the new mark");
  const again = await deposit(world, "ada");
  await editEntry(world, again, () => ({ delta: "2" }));
  const [fault = "", ...others] = (await verify(world, "since=true")).faults;
  assert.match(fault, /entry act_\w+ has balanceAfter \S+, but should have/);
  assert.deepEqual(others, []);
  await verify(world);
  assert.notDeepEqual((await verify(world, "since=true")).faults, [], "a fault leaves no mark");
});

Deno.test("verify: an old entry that was changed soundly is found by its account's mark", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await chat(world);
  await deposit(world, "ada");
  assert.deepEqual((await verify(world)).faults, []);
  const id = (await usageOf(world))[0]?.id ?? assert.fail();
  await editEntry(world, id, ({ usage }) => ({
    usage: usage && { ...usage, model: "another-model" },
  }));
  assert.deepEqual((await verify(world, "since=true")).faults, []);
  for (let run = 0; run < 2; run++) {
    const [fault = ""] = (await verify(world)).faults;
    assert.match(
      fault,
      /ada: an entry up to number 3 has changed since \S+, when it was verified$/,
    );
  }
});

Deno.test("verify: entries that are gone with their account's end are found by its mark", async () => {
  using world = await createWorld();
  await deposit(world, "ada");
  const account = await world.deps.kv.get(accountKey(world.projectId, "ada"));
  const last = await deposit(world, "ada");
  await verify(world);
  await put(world, account.key, account.value ?? assert.fail());
  await remove(world, entryKey(world.projectId, last));
  for (const query of ["", "since=true"]) {
    const { faults } = await verify(world, query);
    assert.ok(faults.some((fault) => /has 1 entries, but had 2 at/.test(fault)), faults.join());
  }
});

Deno.test("verify: after a cut in the middle, since goes on with the accounts without a mark", async () => {
  using world = await createWorld();
  for (let n = 0; n < 110; n++) {
    for (let of = 0; of < 12; of++) await deposit(world, `user-${n}`);
  }
  const cut = await verify(world, "", 1);
  const seen = cut.checked.accounts ?? 0;
  assert.ok(seen > 0 && seen < 110, `${seen} accounts on the first page`);
  const rest = await verify(world, "since=true");
  assert.deepEqual(rest.faults, []);
  assert.equal(rest.checked.entries, seen + (110 - seen) * 12);
  const whole = await verify(world);
  assert.deepEqual([whole.faults, whole.checked.entries], [[], 1_320]);
});

Deno.test("verify: parts together see each entry once, and an entry of no account", async () => {
  using world = await createWorld();
  for (let n = 0; n < 30; n++) {
    await deposit(world, `user-${n % 7}`);
    await world.clock.advance(60_000);
  }
  await world.clock.advance(60_000);
  const inParts = async () => {
    const { until, ...first } = await verify(world, "part=1&parts=3");
    const others = [
      await verify(world, `part=3&parts=3&until=${until}`),
      await verify(world, `part=2&parts=3&until=${until}`),
    ];
    const all = [first, ...others];
    const sum = (of: (run: typeof first) => number | undefined) =>
      all.reduce((total, run) => total + (of(run) ?? 0), 0);
    return {
      faults: all.flatMap(({ faults }) => faults),
      entries: all.map(({ checked }) => checked.entries ?? 0),
      counted: sum(({ checked }) => checked.entriesCounted),
      tally: sum(({ tallies }) => tallies[world.projectId]),
    };
  };
  const fresh = await verify(world, "part=2&parts=3&until=2020-01-01T00:00:00Z");
  assert.deepEqual(fresh.faults, [], "entries that are all younger have parts, too");
  const sound = await inParts();
  assert.deepEqual([sound.faults, sound.tally, sound.counted], [[], 0, 30]);
  assert.ok(sound.entries.every((count) => count > 0 && count < 30), sound.entries.join());
  assert.equal(sound.entries.reduce((sum, count) => sum + count, 0), 30);
  const [{ id } = assert.fail()] = await world.activities("user-1");
  await remove(world, accountKey(world.projectId, "user-1"));
  assert.equal((await inParts()).tally, 5);
  const alone = await verify(world, `owner=${world.projectId}`);
  assert.match(alone.faults.join(), /30 entries are stored, but its accounts lead to 25/);
  assert.ok(id);
});

Deno.test("verify: an erased user's mark is removed, and the pseudonym gets its own", async () => {
  using world = await createWorld();
  await deposit(world, "ada");
  await chat(world);
  await verify(world);
  const mark = verifiedKey(world.projectId, "ada");
  assert.ok((await world.deps.kv.get(mark)).value);
  await forgetWholly(world, { forfeit: true }, "ada");
  assert.equal((await world.deps.kv.get(mark)).value, null);
  assert.deepEqual((await verify(world)).faults, []);
  await deposit(world, "ada");
  assert.deepEqual((await verify(world)).faults, []);
  assert.deepEqual((await verify(world, "since=true")).faults, []);
});

Deno.test("verify: parameters that do not fit are refused", async () => {
  using world = await createWorld();
  for (
    const [query, param] of [
      ["part=3&parts=2", "part"],
      ["parts=65", "parts"],
      ["part=0", "part"],
      ["since=yes", "since"],
      ["owner=ada", "owner"],
      ["until=today", "until"],
    ]
  ) {
    const { status, body } = await world.json(`/v1/admin/verify?${query}`, { key: adminKey });
    assert.deepEqual([status, body.error.param], [400, param], query);
  }
});
