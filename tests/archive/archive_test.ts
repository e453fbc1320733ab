import assert from "node:assert/strict";
import { fromBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { entryKey, refundedKey, verifiedKey } from "../../src/store/keys.ts";
import { archivable, dayMs, exportEntries, removeLines } from "../support/archive.ts";
import { chat } from "../support/chat.ts";
import { forgetWholly } from "../support/forget.ts";
import { edit, move, verify } from "../support/verify.ts";
import { sharedWorld } from "../support/wallets.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const deposit = (world: World, user: string, key?: string) =>
  move(world, "/v1/user/balance/deposit", { user, amount: "1" }, key);

/** Two users whose chats and payments follow each other, for three months. */
async function makeOld(world: World): Promise<void> {
  for (let n = 0; n < 9; n++) {
    await deposit(world, "ada", `order-${n}`);
    await chat(world);
    await chat(world, { user: "bob" });
    if (n % 3 === 0) await deposit(world, "bob");
    await chat(world);
    if (n % 4 === 1) {
      await move(world, "/v1/user/charge", { user: "ada", amount: "0.1" }, `charge-${n}`);
    }
    await world.clock.advance(10 * dayMs);
  }
}

const sumOf = (entries: readonly Body[], user: string) =>
  entries.filter((entry) => entry.user === user)
    .reduce((sum, { delta }) => sum + Math.round(Number(delta) * 1e9), 0) / 1e9;

async function soundness(world: World) {
  const { faults, checked } = await verify(world);
  const entries = await exportEntries(world);
  return {
    faults,
    counted: checked.entriesCounted,
    entries: entries.length,
    sums: ["ada", "bob"].map((user) => sumOf(entries, user)),
    balances: [await world.balance("ada"), await world.balance("bob")],
  };
}

/** The lines of a file in the places of what the database has of them, as the export does. */
function merged(entries: readonly Body[], lines: readonly string[]): string[] {
  const kept = entries.filter(({ kind }) => kind !== "carried").map(({ id }) => String(id));
  return [...kept, ...lines.map((line) => (JSON.parse(line) as Entry).id)].sort();
}

Deno.test("archive: old charges of responses become one entry an account; all sums stay", async () => {
  using world = await createWorld();
  await makeOld(world);
  await world.clock.advance(60_000);
  const before = await soundness(world);
  const whole = await exportEntries(world);
  const lines = await archivable(world);
  assert.ok(lines.length > 10 && lines.length < before.entries, `${lines.length}`);
  const answer = await removeLines(world, lines);
  assert.deepEqual(answer, { removed: lines.length, gone: 0, left: [], changed: [] });
  const after = await soundness(world);
  assert.deepEqual(after.faults, []);
  assert.deepEqual([after.sums, after.balances], [before.sums, before.balances]);
  assert.equal(after.entries, before.entries - lines.length + 2, "one for each account");
  const entries = await exportEntries(world);
  const carried = entries.filter(({ kind }) => kind === "carried");
  const count = carried.reduce((sum, each) => sum + each.carried.entries, 0);
  assert.equal(count, lines.length);
  assert.deepEqual(merged(entries, lines), whole.map(({ id }) => id));
  assert.deepEqual((await world.activities("ada")).at(-1)?.idempotencyKey, "order-0");
  assert.deepEqual((await archivable(world)).length, 0);
  // Money moves on, and a later run folds the carried entries into new ones.
  await chat(world);
  await world.clock.advance(60 * dayMs);
  const more = await archivable(world);
  await removeLines(world, more);
  const again = await soundness(world);
  assert.deepEqual(again.faults, []);
  const left = (await exportEntries(world)).filter(({ kind }) => kind === "carried");
  assert.equal(left.length, 2);
  assert.deepEqual(
    merged(await exportEntries(world), [...lines, ...more]).length,
    whole.length + 1,
  );
});

Deno.test("archive: a call may be cut off after any write, and repeated", async () => {
  using world = await createWorld();
  await makeOld(world);
  await world.clock.advance(60_000);
  const before = await soundness(world);
  const lines = await archivable(world);
  for (let cut = 3; cut < lines.length; cut += 3) {
    // As if the service had ended after the writes for these lines.
    await removeLines(world, lines.slice(0, cut));
    const now = await soundness(world);
    assert.deepEqual(now.faults, [], `after ${cut} lines`);
    assert.deepEqual([now.sums, now.balances], [before.sums, before.balances]);
  }
  await removeLines(world, lines);
  const again = await removeLines(world, lines);
  assert.deepEqual(again, { removed: 0, gone: lines.length, left: [], changed: [] });
  assert.deepEqual((await soundness(world)).sums, before.sums);
});

Deno.test("archive: an entry whose older one stays is left, and removed with that one", async () => {
  using world = await createWorld();
  await makeOld(world);
  const [first = "", ...rest] = await archivable(world);
  const later = await removeLines(world, rest);
  const ofUser = (user: string) =>
    rest.map((line) => JSON.parse(line) as Entry).filter((entry) => entry.user === user);
  const { user } = JSON.parse(first) as Entry;
  assert.deepEqual(later.left, ofUser(user).map(({ id }) => id));
  assert.equal((await removeLines(world, [first, ...rest])).removed, 1 + ofUser(user).length);
});

Deno.test("archive: what differs from the file stays, and so does what was not sent", async () => {
  using world = await createWorld();
  await makeOld(world);
  const lines = await archivable(world);
  const other = lines.map((line) => line.replace('"source":"provider"', '"source":"estimated"'));
  const answer = await removeLines(world, other);
  assert.equal(answer.changed.length, lines.length);
  assert.equal(answer.removed, 0);
  assert.equal((await archivable(world)).length, lines.length);
});

Deno.test("archive: an unsound account is not archived", async () => {
  using world = await createWorld();
  await makeOld(world);
  const lines = await archivable(world);
  const [, second] = lines.map((line) => JSON.parse(line) as Entry)
    .filter(({ user }) => user === "ada");
  const deposits = (await world.activities("ada")).filter(({ kind }) => kind === "deposit");
  const key = entryKey(world.projectId, deposits.at(-1)?.id);
  await edit<Entry>(world, key, (entry) => ({ ...entry, delta: "3" }));
  const answer = await removeLines(world, lines);
  assert.ok(answer.left.includes(second?.id), JSON.stringify(answer));
});

Deno.test("archive: refunds, repetitions and erasures after it", async () => {
  using world = await createWorld();
  await makeOld(world);
  const [charged] = (await world.activities("ada")).filter(({ kind }) => kind === "charge");
  const answers = (await world.activities("ada")).filter(({ kind }) => kind === "usage");
  const refunded = answers.at(-2)?.id;
  await move(world, "/v1/user/refund", { user: "ada", activityId: refunded, amount: "0.00001" });
  const first = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "1" },
    headers: { "idempotency-key": "order-0" },
  });
  const lines = await archivable(world);
  await removeLines(world, lines);
  assert.equal((await world.deps.kv.get(refundedKey(world.projectId, refunded))).value, null);
  const again = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "1" },
    headers: { "idempotency-key": "order-0" },
  });
  assert.deepEqual(again.body, first.body, "a repeated request gets its first response");
  await move(world, "/v1/user/refund", { user: "ada", activityId: charged?.id });
  for (const activityId of [refunded, answers.at(-1)?.id]) {
    const refused = await world.json("/v1/user/refund", { body: { user: "ada", activityId } });
    assert.deepEqual([refused.status, refused.body.error.code], [400, "archived"]);
  }
  const [carried] = (await world.activities("ada")).filter(({ kind }) => kind === "carried");
  const refused = await world.json("/v1/user/refund", {
    body: { user: "ada", activityId: carried?.id },
  });
  assert.deepEqual([refused.status, refused.body.error.code], [400, "archived"]);
  await world.clock.advance(60_000);
  assert.deepEqual((await verify(world)).faults, []);
  const done = await forgetWholly(world, { forfeit: true }, "ada");
  assert.match(String(done.archivedUntil), /^2026-/);
  assert.deepEqual((await verify(world)).faults, []);
  const entries = await exportEntries(world);
  assert.deepEqual(entries.filter(({ user }) => user === "ada"), []);
});

Deno.test("archive: a carry-forward that is wrong by one is found", async () => {
  using world = await createWorld();
  await makeOld(world);
  await removeLines(world, await archivable(world));
  await world.clock.advance(60_000);
  const rows = await world.deps.kv.list({ prefix: ["entry"], limit: 1_000 });
  const row = rows.find(({ value }) => value && fromBytes<Entry>(value).kind === "carried") ??
    assert.fail();
  const carried = fromBytes<Entry>(row.value ?? assert.fail());
  for (
    const [change, wanted] of [
      [{ delta: "-0.000000001" }, /than its carried entry leaves/],
      [{ balanceAfter: "3" }, /has balanceAfter 3, but should have/],
      [{ carried: { entries: 1, since: 0 } }, /than its carried entry leaves/],
      [{ carried: undefined }, /that states what it stands for/],
      [{ prev: null }, /than its carried entry leaves/],
    ] as [Partial<Entry>, RegExp][]
  ) {
    await edit<Entry>(world, row.key, () => ({ ...carried, ...change }));
    assert.match((await verify(world)).faults.join("\n"), wanted);
  }
});

Deno.test("archive: a verification beside it reports no fault", async () => {
  using world = await createWorld();
  await makeOld(world);
  await world.clock.advance(60_000);
  await verify(world);
  const lines = await archivable(world);
  const [{ faults }] = await Promise.all([verify(world), removeLines(world, lines)]);
  assert.deepEqual(faults, []);
  assert.deepEqual((await verify(world, "since=true")).faults, []);
  assert.ok((await world.deps.kv.get(verifiedKey(world.projectId, "ada"))).value);
});

Deno.test("archive: young entries, other kinds and shared mode are refused", async () => {
  using world = await createWorld();
  const id = await deposit(world, "ada");
  await world.clock.advance(60 * dayMs);
  const path = `/v1/admin/projects/${world.projectId}/archive/entries`;
  const ask = (days: number, entries: unknown) =>
    world.json(path, {
      key: adminKey,
      body: {
        before: new Date(world.clock.now() - days * dayMs).toISOString(),
        sha256: "0".repeat(64),
        entries,
      },
    });
  const young = await ask(30, [[id, "0".repeat(32)]]);
  assert.deepEqual([young.status, young.body.error.param], [400, "before"]);
  const other = await ask(40, [[id, "0".repeat(32)]]);
  assert.equal(other.body.changed[0], id, "the hash of a deposit is not looked at further");
  using shared = await sharedWorld();
  const { status, body } = await shared.json(
    `/v1/admin/projects/${shared.projectId}/archive/entries?before=2020-01-01T00:00:00Z`,
    { key: adminKey },
  );
  assert.deepEqual([status, body.error.code], [400, "mode_conflict"]);
});
