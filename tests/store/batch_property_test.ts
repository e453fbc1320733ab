import assert from "node:assert/strict";
import fc from "fast-check";
import { type Batch, keyText, openBatch, type PendingWrite } from "../../src/store/batch.ts";
import type { Key, Write } from "../../src/store/kv.ts";
import { always } from "../support/property.ts";
import { createWorld } from "../support/world.ts";

const checksMax = 10;
// So few keys, values and versions that writes conflict.
const key: fc.Arbitrary<Key> = fc.constantFrom<Key>(["a"], ["b"], ["c", 1], ["c", 2], ["d", "x"]);
const version = fc.constantFrom(null, "1", "2");

/** Any write that names each of its keys once. */
const write: fc.Arbitrary<Write> = fc.record({
  checks: fc.uniqueArray(fc.record({ key, version }), {
    maxLength: 3,
    selector: ({ key }) => keyText(key),
  }),
  changes: fc.uniqueArray(fc.record({ key, value: fc.constantFrom(null, 1, 2) }), {
    maxLength: 3,
    selector: ({ key }) => keyText(key),
  }),
}).map(({ checks, changes }) => ({
  checks,
  sets: changes.flatMap(({ key, value }) =>
    value === null ? [] : [{ key, value: Uint8Array.of(value) }]
  ),
  deletes: changes.flatMap(({ key, value }) => (value === null ? [key] : [])),
}));

const waiting = (write: Write): PendingWrite => ({ write, resolve() {}, reject() {} });

/** Batches as the committer takes them while more writes arrive: the groups, one per batch. */
function drain(groups: readonly (readonly PendingWrite[])[], most = checksMax): Batch[] {
  const queue: PendingWrite[] = [];
  const batches: Batch[] = [];
  for (let at = 0; at < groups.length || queue.length > 0; at++) {
    queue.push(...groups[at] ?? []);
    if (queue.length === 0) continue;
    const before = [...queue];
    const batch = openBatch(queue, most);
    batches.push(batch);
    assert.ok(batch.members.length >= 1, "at least one is taken");
    assert.deepEqual(before.filter((each) => !batch.members.includes(each)), queue, "in order");
    assert.deepEqual(before.filter((each) => batch.members.includes(each)), batch.members);
  }
  return batches;
}

/** The values that these writes leave, by key. */
function stateAfter(writes: readonly Write[]): Record<string, number | null> {
  const state: Record<string, number | null> = {};
  for (const { sets, deletes } of writes) {
    for (const { key, value } of sets) state[keyText(key)] = value[0] ?? null;
    for (const key of deletes) state[keyText(key)] = null;
  }
  return state;
}

const groups = fc.array(fc.array(write.map(waiting), { maxLength: 6 }), { maxLength: 5 });

Deno.test("batch: any writes are all taken, once, with the same result as one after the other", () =>
  always(
    1_000,
    fc.property(groups, (groups) => {
      const batches = drain(groups);
      const all = groups.flat();
      const taken = batches.flatMap(({ members }) => members);
      assert.equal(taken.length, all.length);
      assert.equal(new Set(taken).size, all.length);
      const merged = batches.map(({ write }) => write);
      assert.deepEqual(stateAfter(merged), stateAfter(all.map(({ write }) => write)));
    }),
  ));

const changesOf = ({ sets, deletes }: Write) => [
  ...sets.map(({ key, value }) => `${keyText(key)}=${value[0]}`),
  ...deletes.map((key) => `${keyText(key)} deleted`),
];
const checksOf = ({ checks }: Write) =>
  checks.map(({ key, version }) => `${keyText(key)}@${version}`);
const sorted = (texts: Iterable<string>) => [...new Set(texts)].sort();

Deno.test("batch: one write is exactly its members', and no two of them clash", () =>
  always(
    1_000,
    fc.property(groups, (groups) => {
      for (const { write, members } of drain(groups)) {
        const writes = members.map(({ write }) => write);
        assert.deepEqual(sorted(changesOf(write)), sorted(writes.flatMap(changesOf)));
        assert.deepEqual(sorted(checksOf(write)), sorted(writes.flatMap(checksOf)));
        // Deno KV would accept a key twice, and let the last one win.
        const changed = [...write.sets.map(({ key }) => key), ...write.deletes].map(keyText);
        assert.equal(new Set(changed).size, changed.length, "a key changes in one way");
        const checked = write.checks.map(({ key }) => keyText(key));
        assert.equal(new Set(checked).size, checked.length, "a key has one version");
      }
    }),
  ));

Deno.test("batch: each member gets the result that it would get one after the other", () =>
  always(
    1_000,
    fc.property(groups, (groups) => {
      for (const { members } of drain(groups)) {
        const changed = new Set<string>();
        for (const { write } of members) {
          const stale = write.checks.filter(({ key }) => changed.has(keyText(key)));
          assert.deepEqual(stale, [], "it stands on what was there before an earlier one");
          changedKeys(write).forEach((key) => changed.add(key));
        }
      }
    }),
  ));

Deno.test("batch: a write never comes before an earlier one of the same key", () =>
  always(
    1_000,
    fc.property(groups, (groups) => {
      const batches = drain(groups);
      const batchOf = new Map(
        batches.flatMap(({ members }, at) => members.map((each) => [each, at] as const)),
      );
      const all = groups.flat();
      for (const [at, later] of all.entries()) {
        const keys = changedKeys(later.write);
        for (const earlier of all.slice(0, at)) {
          if (!changedKeys(earlier.write).some((key) => keys.includes(key))) continue;
          assert.ok((batchOf.get(earlier) ?? 0) <= (batchOf.get(later) ?? 0));
        }
      }
    }),
  ));

const changedKeys = ({ sets, deletes }: Write) =>
  [...sets.map(({ key }) => key), ...deletes].map(keyText);

/** Writes of any size that the store accepts alone, to their own keys. */
const sized = fc.record({
  rows: fc.constantFrom(1, 1, 3, 20, 200, 900),
  keyChars: fc.constantFrom(1, 100, 600),
  letter: fc.constantFrom("k", "é", "€", "\u0000"),
  bytes: fc.constantFrom(0, 10, 1_000, 60_000),
  checks: fc.nat(9),
  deletes: fc.boolean(),
}).filter(({ rows, keyChars, bytes }) => rows * (keyChars * 6 + bytes) < 70_000);
type Sized = typeof sized extends fc.Arbitrary<infer T> ? T : never;

/** Many of one size, which reach one limit, among some of others. */
const sizes = fc.tuple(sized, fc.nat(60), fc.array(sized, { maxLength: 10 }))
  .map(([size, count, others]) => [...Array<Sized>(count).fill(size), ...others]);

Deno.test("batch: whatever is gathered, the store accepts it as one write", async () => {
  using world = await createWorld();
  let serial = 0;
  let gathered = 0;
  const made = ({ rows, keyChars, letter, bytes, checks, deletes }: Sized): PendingWrite => {
    const keys = Array.from({ length: rows }, (): Key => [++serial, letter.repeat(keyChars)]);
    return waiting({
      checks: Array.from({ length: checks }, () => ({ key: [++serial], version: null })),
      sets: deletes ? [] : keys.map((key) => ({ key, value: new Uint8Array(bytes) })),
      deletes: deletes ? keys : [],
    });
  };
  await always(
    30,
    fc.asyncProperty(sizes, async (sizes) => {
      for (const { write, members } of drain([sizes.map(made)], 100)) {
        if (members.length > 1) gathered++;
        // As the committer sends it, with a marker.
        const marked = {
          checks: [...write.checks, { key: ["marker"], version: null }],
          sets: [...write.sets, { key: ["marker", ++serial], value: new Uint8Array(6) }],
          deletes: [...write.deletes, ["marker", serial - 1]],
        };
        assert.notEqual(await world.deps.kv.atomic(marked), null);
      }
    }),
  );
  assert.ok(gathered > 40, `${gathered} were of several`);
});

Deno.test("batch: fewer checks than are allowed, with space for the marker's own", () =>
  always(
    300,
    fc.property(
      fc.integer({ min: 8, max: 100 }),
      fc.array(fc.nat(9), { maxLength: 60 }),
      (most, counts) => {
        let serial = 0;
        const writes = counts.map((count) =>
          waiting({
            checks: Array.from({ length: count }, () => ({ key: [++serial], version: null })),
            sets: [],
            deletes: [[++serial]],
          })
        );
        for (const { write: { checks }, members } of drain([writes], most)) {
          // A write that is too large by itself is sent alone, for the store to reject.
          assert.ok(checks.length < most || members.length === 1, `${checks.length} of ${most}`);
        }
      },
    ),
  ));
