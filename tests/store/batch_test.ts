import assert from "node:assert/strict";
import { type Batch, openBatch, type PendingWrite } from "../../src/store/batch.ts";
import { emptyWrite, type Key, type Write } from "../../src/store/kv.ts";
import { createWorld } from "../support/world.ts";

function pending(write: Partial<Write>): PendingWrite {
  return { write: { ...emptyWrite(), ...write }, resolve() {}, reject() {} };
}

let settings = 0;

/** A write of a value that no other write has. */
function setting(key: Key, bytes = 4): PendingWrite {
  const value = new Uint8Array(bytes);
  new DataView(value.buffer).setUint32(0, ++settings);
  return pending({ sets: [{ key, value }] });
}

function deleting(n: number, length: number): PendingWrite {
  return pending({ deletes: [["row", `${n}`.padStart(length, "k")]] });
}

/** Takes batches until none is left, and returns the number of members of each. */
function drain(queue: PendingWrite[], checksMax = 100): Batch[] {
  const batches: Batch[] = [];
  while (queue.length > 0) {
    const before = queue.length;
    batches.push(openBatch(queue, checksMax));
    assert.ok(queue.length < before, "each batch takes at least one");
  }
  return batches;
}

const many = (count: number, make: (n: number) => PendingWrite) =>
  Array.from({ length: count }, (_, n) => make(n));

/** The most that Deno KV accepts in one atomic write, less the marker. */
const limits: [label: string, queue: () => PendingWrite[], batches: number][] = [
  ["small writes", () => many(900, (n) => setting(["row", n])), 1],
  ["999 mutations", () => many(999, (n) => setting(["row", n])), 2],
  ["20 of 40 KiB", () => many(20, (n) => setting(["row", n], 40 * 1024)), 2],
  ["keys of 1 KB", () => many(100, (n) => setting(["row", `${n}`.padStart(1000, "k")])), 2],
  [
    "keys of 600 characters of 3 bytes",
    () => many(100, (n) => setting(["row", `${n}`.padStart(600, "\u20ac")])),
    3,
  ],
  // The store counts the keys of deletes as bytes, and not as keys.
  ["deletes of 1 KB keys", () => many(100, (n) => deleting(n, 1000)), 1],
  ["deletes of 1.8 KB keys", () => many(500, (n) => deleting(n, 1800)), 2],
];

Deno.test("batch: closes before it exceeds the store's limits, and the store accepts it", async () => {
  for (const [label, queue, count] of limits) {
    using world = await createWorld();
    const batches = drain(queue());
    assert.equal(batches.length, count, label);
    assert.equal(batches.flatMap(({ members }) => members).length, queue().length, label);
    for (const { write } of batches) {
      assert.notEqual(await world.deps.kv.atomic(write), null, label);
    }
  }
});

Deno.test("batch: includes all increments of its writes, with space for the largest rows of sums", async () => {
  using world = await createWorld();
  const queue = many(200, (n) =>
    pending({
      deletes: [["row", n]],
      additions: [{ key: ["sum", n], field: "deposit", values: [1n] }],
    }));
  const batches = drain(queue).map(({ write }) => write);
  const added = batches.flatMap(({ additions }) => additions ?? []);
  assert.deepEqual(added.map(({ key }) => key[1]), Array.from({ length: 200 }, (_, n) => n));
  for (const write of batches) {
    const rows = (write.additions ?? []).map(({ key }) => ({ key, value: new Uint8Array(15_000) }));
    assert.notEqual(await world.deps.kv.atomic({ ...write, sets: rows }), null);
  }
});

Deno.test("batch: closes on checks, and leaves space for the marker's own", () => {
  for (const checksMax of [10, 100]) {
    const queue = many(250, (n) =>
      pending({
        checks: [{ key: ["row", n], version: null }, { key: ["other", n], version: null }],
        sets: [{ key: ["row", n], value: new Uint8Array(1) }],
      }));
    for (const { write } of drain(queue, checksMax)) {
      assert.ok(write.checks.length < checksMax, `${write.checks.length} of ${checksMax}`);
    }
  }
});

Deno.test("batch: a check shared by many is one check", () => {
  const queue = many(300, (n) =>
    pending({
      checks: [{ key: ["project"], version: "1" }],
      sets: [{ key: ["row", n], value: new Uint8Array(1) }],
    }));
  const [batch, ...more] = drain(queue);
  assert.equal(more.length, 0);
  assert.deepEqual(batch?.write.checks, [{ key: ["project"], version: "1" }]);
});

Deno.test("batch: two writes of one key, or two views of one version, are never one write", () => {
  const value = new Uint8Array(1);
  const other = new Uint8Array([1]);
  const pairs: [label: string, a: Partial<Write>, b: Partial<Write>][] = [
    ["set and set", { sets: [{ key: ["a"], value }] }, { sets: [{ key: ["a"], value: other }] }],
    ["set and delete", { sets: [{ key: ["a"], value }] }, { deletes: [["a"]] }],
    ["delete and set", { deletes: [["a"]] }, { sets: [{ key: ["a"], value }] }],
    ["two versions", { checks: [{ key: ["a"], version: "1" }] }, {
      checks: [{ key: ["a"], version: "2" }],
    }],
    ["there and not there", { checks: [{ key: ["a"], version: "1" }] }, {
      checks: [{ key: ["a"], version: null }],
    }],
  ];
  for (const [label, a, b] of pairs) {
    const [first, second] = drain([pending(a), pending(b)]);
    assert.equal(first?.members.length, 1, label);
    assert.equal(second?.members.length, 1, label);
  }
});

Deno.test("batch: two writes of the same value to one key are one, and set it once", () => {
  const same = () =>
    pending({ sets: [{ key: ["a"], value: new Uint8Array([7]) }], deletes: [["b", ++settings]] });
  const [batch, ...more] = drain([same(), same(), same()]);
  assert.deepEqual([batch?.members.length, batch?.write.sets.length, more.length], [3, 1, 0]);
});

Deno.test("batch: of writes that claim one row alike, one lands, and its caller gets that result", async () => {
  using world = await createWorld();
  const key = ["claimed"];
  const claim = () =>
    world.deps.committer.commit({
      checks: [{ key, version: null }],
      sets: [{ key, value: new Uint8Array() }],
      deletes: [],
    });
  const busy = world.deps.committer.commit({ ...emptyWrite(), deletes: [["other"]] });
  const claims = await Promise.all([claim(), claim(), claim()]);
  await busy;
  assert.equal(claims.filter((version) => version !== null).length, 1);
});

Deno.test("batch: writes of one key keep their order, and let others pass", () => {
  const [a, b, c, d] = [setting(["a"]), setting(["a"]), setting(["b"]), setting(["a"])];
  const batches = drain([a, b, c, d] as PendingWrite[]);
  assert.deepEqual(batches.map(({ members }) => members), [[a, c], [b], [d]]);
});

Deno.test("batch: a waiting write is not overtaken by a later one of its keys", () => {
  const value = new Uint8Array(1);
  // The second waits for the first, on "a"; the third must wait for the second, on "b".
  const [first, second, third] = [
    setting(["a"]),
    pending({ sets: [{ key: ["a"], value }, { key: ["b"], value }] }),
    setting(["b"]),
  ];
  const batches = drain([first, second, third] as PendingWrite[]);
  assert.deepEqual(batches.map(({ members }) => members), [[first], [second], [third]]);
});

Deno.test("batch: a write that is too large goes alone, first or not", () => {
  const large = setting(["large"], 800 * 1024);
  const small = many(3, (n) => setting(["row", n]));
  assert.deepEqual(drain([large, ...small]).map(({ members }) => members.length), [1, 3]);
  assert.deepEqual(drain([...small, large]).map(({ members }) => members.length), [3, 1]);
});
