import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { withExpiry } from "../../src/store/expiry.ts";
import { expiryIndexedKey } from "../../src/store/keys.ts";
import type { Key } from "../../src/store/kv.ts";
import { expiringKinds } from "../../src/sweeps.ts";
import { endingRow, putRows } from "../support/ending_rows.ts";
import { createWorld, type World } from "../support/world.ts";

const day = 24 * 60 * 60 * 1000;

/** Rows of every kind that have ended, and some that have not. */
async function fill(
  world: World,
  { isIndexed = true, rowsEach = 250 }: { isIndexed?: boolean; rowsEach?: number } = {},
): Promise<void> {
  const now = world.clock.now();
  for (const kind of expiringKinds) {
    const rowOf = (name: string, endsAt: number) => {
      const row = endingRow(kind, { projectId: "pw_1", name, endsAt });
      return isIndexed ? withExpiry(kind, row) : [row];
    };
    const ended = Array.from({ length: rowsEach }, (_, n) => rowOf(`old-${n}`, now - 1 - n));
    await putRows(world.deps.kv, ended.flat());
    await putRows(world.deps.kv, ["live-1", "live-2"].flatMap((name) => rowOf(name, now + day)));
  }
}

const rowsUnder = (world: World, prefix: Key) => world.deps.kv.list({ prefix, limit: 100_000 });

/** The names of what is left of each kind. */
async function left(world: World): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const { prefix } of expiringKinds) {
    found.push(...(await rowsUnder(world, prefix)).map(({ key }) => key.at(-1)));
  }
  return found;
}

const allLive = expiringKinds.flatMap(() => ["live-1", "live-2"]);

Deno.test("expiry: one sweep removes all that has ended, of every kind, and reads nothing else", async () => {
  const read: Key[] = [];
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async list(options) {
        const rows = await kv.list(options);
        read.push(...rows.map(({ key }) => key));
        return rows;
      },
      async getMany(keys) {
        read.push(...keys);
        return await kv.getMany(keys);
      },
    }),
  });
  await world.app.sweep();
  await fill(world, { rowsEach: 5_000 });
  read.length = 0;
  await world.app.sweep();
  // Some are read for what they are: redeliveries to be continued, events to ask Stripe.
  const readAnyway: unknown[] = ["redelivery_job", "unverified_events"];
  const ofLive = read.filter((key) =>
    String(key.at(-1)).startsWith("live") && !readAnyway.includes(key[0])
  );
  assert.deepEqual(ofLive, [], "what has not ended is not looked at");
  assert.deepEqual(await left(world), allLive);
  assert.equal((await rowsUnder(world, ["expiry"])).length, allLive.length);
});

Deno.test("expiry: a sweep ends when it is late, and the next one goes on", async () => {
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async atomic(write) {
        // So slow is the store that one sweep can make only a few writes.
        if (write.deletes.some(([name]) => name === "expiry")) await world.clock.advance(500);
        return await kv.atomic(write);
      },
    }),
  });
  await world.app.sweep();
  await fill(world);
  await world.app.sweep();
  const after = (await left(world)).length;
  assert.ok(after > allLive.length && after < expiringKinds.length * 250, `${after}`);
  for (let n = 0; n < 30; n++) await world.app.sweep();
  assert.deepEqual(await left(world), allLive);
});

Deno.test("expiry: a row that was written again with a later end stays until then", async () => {
  using world = await createWorld();
  await world.app.sweep();
  const now = world.clock.now();
  const { kv } = world.deps;
  for (const kind of expiringKinds) {
    for (const endsAt of [now - 5, now + 1_000]) {
      const row = endingRow(kind, { projectId: "pw_1", name: "again", endsAt });
      await putRows(kv, withExpiry(kind, row));
    }
  }
  await world.app.sweep();
  assert.equal((await left(world)).length, expiringKinds.length);
  assert.equal((await rowsUnder(world, ["expiry"])).length, expiringKinds.length);
  await world.clock.advance(1_001);
  await world.app.sweep();
  assert.deepEqual(await left(world), []);
  assert.deepEqual(await rowsUnder(world, ["expiry"]), []);
});

Deno.test("expiry: rows of 0.9.0, which have no end of their own, are removed too", async () => {
  using world = await createWorld();
  await fill(world, { isIndexed: false });
  await putRows(world.deps.kv, [{ key: ["chat_replay_due", 1, "pw_1", "a"], value: toBytes({}) }]);
  await world.app.sweep();
  assert.deepEqual(await left(world), allLive);
  assert.deepEqual(await rowsUnder(world, ["chat_replay_due"]), []);
  await world.clock.advance(2 * day);
  await world.app.sweep();
  assert.deepEqual(await left(world), []);
  assert.deepEqual(await rowsUnder(world, ["expiry"]), []);
});

Deno.test("expiry: what a process of 0.9.0 still writes after the first start is found a day later", async () => {
  using world = await createWorld();
  await world.app.sweep();
  await fill(world, { isIndexed: false });
  await world.app.sweep();
  assert.ok((await left(world)).length > allLive.length);
  await world.clock.advance(day + 1);
  await world.app.sweep();
  assert.deepEqual(await left(world), []);
  const { value } = await world.deps.kv.get(expiryIndexedKey);
  assert.equal(JSON.parse(new TextDecoder().decode(value ?? undefined)).passes, 2);
});

Deno.test("expiry: an end that cannot be understood is left alone, and stops nothing", async () => {
  using world = await createWorld();
  await world.app.sweep();
  const { kv } = world.deps;
  const newer: Key = ["expiry", 0, 1, "of_a_newer_version", "x"];
  await putRows(kv, [
    { key: newer, value: new Uint8Array() },
    { key: ["expiry", 0, 1, "kept_id", "pw_1", "broken"], value: new Uint8Array() },
    { key: ["kept_id", "pw_1", "broken"], value: Uint8Array.of(1, 2) },
  ]);
  await fill(world);
  await world.app.sweep();
  assert.deepEqual((await left(world)).filter((name) => name !== "broken"), allLive);
  assert.notEqual((await kv.get(newer)).value, null);
});
