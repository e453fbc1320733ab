import assert from "node:assert/strict";
import fc from "fast-check";
import { batchReads } from "../../src/store/read_batcher.ts";
import { fileLimits } from "../../src/platform/deno_kv.ts";
import type { Key, Kv } from "../../src/store/kv.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { createHandClock } from "../support/clock.ts";
import { always } from "../support/property.ts";

const key = (n: number): Key => ["row", n];
const valueOf = (n: number) => Uint8Array.of(n);

/** A store of a hundred rows; each read waits until the test completes or fails it. */
function createSlowStore() {
  const { kv } = new MemoryStore();
  const stored = kv.atomic({
    checks: [],
    sets: Array.from({ length: 100 }, (_, n) => ({ key: key(n), value: valueOf(n) })),
    deletes: [],
  });
  const reads: { keys: readonly Key[]; answer: PromiseWithResolvers<void> }[] = [];
  const slow: Kv = {
    ...kv,
    async getMany(keys) {
      const answer = Promise.withResolvers<void>();
      reads.push({ keys, answer });
      await answer.promise;
      await stored;
      return await kv.getMany(keys);
    },
  };
  const clock = createHandClock();
  return { reads, clock, kv: batchReads(slow, clock) };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 0));

Deno.test("read batcher: keys requested during a read go with the next one", async () => {
  const { kv, reads } = createSlowStore();
  const first = kv.get(key(1));
  const others = [kv.get(key(2)), kv.getMany([key(3), key(4)]), kv.get(key(2))];
  assert.deepEqual(reads.map(({ keys }) => keys), [[key(1)]]);
  reads[0]?.answer.resolve();
  assert.deepEqual((await first).value, valueOf(1));
  await turn();
  assert.deepEqual(reads[1]?.keys, [key(2), key(3), key(4), key(2)]);
  reads[1]?.answer.resolve();
  const [second, pair, again] = await Promise.all(others);
  assert.deepEqual([second, again].map((row) => Object(row).value), [valueOf(2), valueOf(2)]);
  assert.deepEqual(Object(pair).map(({ value }: { value: Uint8Array }) => value[0]), [3, 4]);
});

Deno.test("read batcher: a failed read fails for its own callers, and for no later ones", async () => {
  const { kv, reads } = createSlowStore();
  const first = kv.get(key(1));
  const together = [kv.get(key(2)), kv.getMany([key(3), key(4)])];
  reads[0]?.answer.resolve();
  await first;
  await turn();
  const next = kv.get(key(5));
  reads[1]?.answer.reject(new Error("broken"));
  await Promise.all(together.map((each) => assert.rejects(each, /broken/)));
  await turn();
  reads[2]?.answer.resolve();
  assert.deepEqual((await next).value, valueOf(5));
  await turn();
  const later = kv.get(key(6));
  reads[3]?.answer.resolve();
  assert.deepEqual((await later).value, valueOf(6), "nor when nothing was under way");
});

Deno.test("read batcher: every caller gets its keys, no call is split, and reads are few", async () => {
  const calls = fc.array(fc.array(fc.nat(120), { maxLength: 15 }), { minLength: 1, maxLength: 30 });
  await always(
    200,
    fc.asyncProperty(calls, async (calls) => {
      const { kv, reads } = createSlowStore();
      const asked = calls.map((numbers) => kv.getMany(numbers.map(key)));
      for (let at = 0; at < reads.length; at++) {
        reads[at]?.answer.resolve();
        await turn();
      }
      for (const [at, rows] of (await Promise.all(asked)).entries()) {
        const expected = calls[at]?.map((n) => (n < 100 ? valueOf(n) : null));
        assert.deepEqual(rows.map(({ value }) => value), expected);
        assert.deepEqual(rows.map(({ key }) => key), calls[at]?.map(key));
      }
      const sizes = reads.map(({ keys }) => keys.length);
      const longest = Math.max(fileLimits.readKeys, ...calls.map((numbers) => numbers.length));
      assert.ok(sizes.every((size) => size <= longest), `${sizes}`);
      assert.ok(calls.every((numbers) =>
        reads.some(({ keys }) => {
          const read = keys.map(([, n]) => n).join() + ",";
          return `,${read}`.includes(`,${numbers.map((n) => `${n},`).join("")}`);
        })
      ));
    }),
  );
});

Deno.test("read batcher: reads that wait behind one that hangs fail with it", async () => {
  const { kv, reads, clock } = createSlowStore();
  const first = kv.get(key(1));
  await clock.advance(4_900);
  const waiting = kv.get(key(2));
  await clock.advance(100);
  reads[0]?.answer.reject(new Error("hung"));
  await assert.rejects(first, /hung/);
  await assert.rejects(waiting, /hung/);
  assert.equal(reads.length, 1);
  const later = kv.get(key(3));
  reads[1]?.answer.resolve();
  assert.deepEqual((await later).value, valueOf(3));
});
