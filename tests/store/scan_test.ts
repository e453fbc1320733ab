import assert from "node:assert/strict";
import { firstIdAt } from "../../src/base/ids.ts";
import { createBudgets } from "../../src/store/budgets.ts";
import type { Committer } from "../../src/store/commit.ts";
import { backOff } from "../../src/store/backoff.ts";
import { eraseRows } from "../../src/store/erase.ts";
import type { Key, Kv } from "../../src/store/kv.ts";
import { listByTime } from "../../src/store/listing.ts";
import {
  pagesUnder,
  ScanBudget,
  type ScanCounts,
  scanRows,
  verifyAtRest,
} from "../../src/store/scan.ts";
import { MemoryStore } from "../simulation/memory_store.ts";

const put = (kv: Kv, key: Key, value = 0) =>
  kv.atomic({ checks: [], sets: [{ key, value: Uint8Array.of(value) }], deletes: [] });
const row = (n: number): Key => ["row", n];
const plenty = () => new ScanBudget(Infinity, () => false);

async function storeOf(count: number): Promise<Kv> {
  const { kv } = new MemoryStore();
  for (let n = 0; n < count; n++) await put(kv, row(n));
  return kv;
}

Deno.test("scan: a record is only judged by what it contains while it rests", async () => {
  const kv = await storeOf(1);
  const judged = async (changes: number) => {
    const counts: ScanCounts = {};
    let left = changes;
    const faults = await verifyAtRest(kv, { key: row(0), counts }, async ({ version }) => {
      if (left-- > 0) await put(kv, row(0));
      return [`version ${version}`];
    });
    return { faults, counts };
  };
  const { version } = await kv.get(row(0));
  assert.deepEqual(await judged(0), { faults: [`version ${version}`], counts: {} });
  const { faults, counts } = await judged(19);
  assert.deepEqual(faults, [`version ${(await kv.get(row(0))).version}`], "its last version");
  assert.deepEqual(counts, {});
  assert.deepEqual(await judged(20), { faults: [], counts: { neverAtRest: 1 } });
  const gone = { key: row(1), counts: {} };
  assert.deepEqual(await verifyAtRest(kv, gone, () => Promise.resolve(["is not there"])), []);
});

Deno.test("scan: a page ends when its time is over, and the next one continues after it", async () => {
  const kv = await storeOf(25);
  const seen: Key[] = [];
  const scan = scanRows({
    name: "rows",
    kv,
    prefix: ["row"],
    rowsPerRead: 10,
    look: (rows) => {
      seen.push(...rows.map(({ key }) => key));
      return Promise.resolve([]);
    },
  });
  const late = new ScanBudget(Infinity, () => true);
  const places = [(await scan.page(null, late)).next];
  places.push((await scan.page([9], late)).next);
  places.push((await scan.page([19], late)).next);
  assert.deepEqual(places, [[9], [19], null]);
  assert.deepEqual(seen, Array.from({ length: 25 }, (_, n) => row(n)));
});

Deno.test("scan: pages contain every row once, also if the last one is full", async () => {
  for (const count of [0, 1, 10, 11, 20]) {
    const kv = await storeOf(count);
    const pages = await Array.fromAsync(pagesUnder(kv, ["row"], 10));
    const keys = pages.flat().map(({ key }) => key);
    assert.deepEqual(keys, Array.from({ length: count }, (_, n) => row(n)));
    assert.equal(pages.length, Math.floor(count / 10) + 1);
  }
});

Deno.test("listing: a range contains what was created in it, though its id is days older, or an hour newer", async () => {
  const { kv } = new MemoryStore();
  const hourMs = 3_600_000;
  const from = 100 * 24 * hourMs;
  const to = from + hourMs;
  const made: [idMs: number, createdAt: number][] = [
    [from - 6 * 24 * hourMs, from],
    [from - hourMs, from - 1],
    [from + 1, from + 1],
    [to - 1, to],
    [to + hourMs - 1, to - 1],
  ];
  const times = new Map(made.map(([idMs, at]) => [firstIdAt("act", idMs), at]));
  for (const id of times.keys()) await put(kv, ["entry", id]);
  const { records, next } = await listByTime(kv, {
    prefix: ["entry"],
    kind: "act",
    read: ({ key }) => {
      const createdAt = times.get(String(key[1])) ?? 0;
      return { createdAt, record: { createdAt } };
    },
  }, { after: null, from, to });
  assert.deepEqual(records, [from, from + 1, to - 1].map((createdAt) => ({ createdAt })));
  assert.equal(next, null);
});

Deno.test("forget: a row that changes while it is rewritten is read again, and none is skipped", async () => {
  const kv = await storeOf(150);
  const committer: Committer = {
    commit: (write) => kv.atomic(write),
    count() {},
    carry() {},
    carried: () => 0,
    flush: () => Promise.resolve(),
    idle: () => Promise.resolve(),
    budgets: createBudgets(kv),
  };
  let changes = 1;
  const eraser = eraseRows({
    name: "rows",
    kv,
    committer,
    prefix: () => ["row"],
    rewrite({ key, value }) {
      if (value?.[0] === 9) return null;
      // Other writers change it between our read and our write.
      if (key[1] === 120 && changes-- > 0) put(kv, key, 1);
      return { sets: [{ key, value: Uint8Array.of(9) }], deletes: [] };
    },
  });
  const erasure = { projectId: "p", user: "ada", pseudonym: "x", until: "evt_1" };
  const first = await eraser.page(erasure, null, plenty());
  assert.deepEqual(first, { erased: 149, next: [99], waiting: true });
  assert.deepEqual(await eraser.page(erasure, first.next, plenty()), { erased: 1, next: null });
  const rows = await kv.list({ prefix: ["row"], limit: 200 });
  assert.ok(rows.every(({ value }) => value?.[0] === 9));
});

Deno.test("contention: before another attempt there is a random pause, from zero to twice a growing delay", async () => {
  const slept = async (byte: number, attempt: number) => {
    let ms = -1;
    const clock = {
      now: () => 0,
      elapsed: () => 0,
      after: () => () => {},
      sleep: (wait: number) => {
        ms = wait;
        return Promise.resolve();
      },
    };
    await backOff({ clock, randomBytes: () => Uint8Array.of(byte) }, attempt);
    return ms;
  };
  assert.deepEqual([await slept(0, 3), await slept(128, 1), await slept(128, 3)], [0, -1, 12]);
  assert.ok(await slept(255, 3) < 24 && await slept(255, 3) > 23);
});
