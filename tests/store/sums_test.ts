import assert from "node:assert/strict";
import { createHandClock } from "../support/clock.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createCommitter } from "../../src/store/commit.ts";
import { emptyWrite, type Key, type Write } from "../../src/store/kv.ts";
import { createSums, decodeSum } from "../../src/store/sums.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { createGate, createScriptedStore } from "../support/store.ts";

const hour: Key = ["sum", "hour"];
const one = (field: string, key: Key = hour) => ({ key, field, values: [1n, 10n] });

/**
 * Sums whose rows are numbered, and what they would write: the fields of each row by its number.
 */
function openSums() {
  let rows = 0;
  const sums = createSums(() => `${++rows}`);
  const after = (...fields: string[]) => {
    const { sets, committed } = sums.after(fields.map((field) => one(field)));
    assert.equal(sets.length, 1);
    const [{ key, value } = { key: hour, value: new Uint8Array() }] = sets;
    return { row: key.at(-1), fields: Object.fromEntries(decodeSum(value)), landed: committed };
  };
  return { sums, after };
}

Deno.test("sums: a row contains what has landed and what is added, and nothing else", () => {
  const { sums, after } = openSums();
  after("deposit", "deposit").landed();
  after("deposit", "charge");
  const next = after("charge");
  assert.deepEqual([next.row, next.fields], ["1", { deposit: [2n, 20n], charge: [1n, 10n] }]);
  next.landed();
  sums.abandon([one("charge")]);
  const anew = after("charge");
  assert.deepEqual([anew.row, anew.fields], ["2", { charge: [1n, 10n] }]);
});

Deno.test("sums: a row that is full of one kind still counts known fields, and other kinds", () => {
  const { after } = openSums();
  const models = Array.from({ length: 24 }, (_, n) => `model:${n}`);
  after(...models).landed();
  const { fields } = after("model:7", "model:new", "model:newer", "key:a", "deposit");
  assert.deepEqual(fields["model:7"], [2n, 20n]);
  assert.deepEqual(fields["model:other"], [2n, 20n]);
  assert.deepEqual([fields["key:a"], fields.deposit], [[1n, 10n], [1n, 10n]]);
  assert.equal(Object.keys(fields).length, 27);
});

Deno.test("sums: a name of up to 126 bytes is kept, a longer one is counted as other", () => {
  const { after } = openSums();
  const [longest, longer] = ["m".repeat(120), "m".repeat(119) + "é"].map((name) => `model:${name}`);
  const { fields } = after(String(longest), String(longer));
  assert.deepEqual(Object.keys(fields), [longest, "model:other"]);
});

Deno.test("sums: ten thousand rows are kept in memory, and no more", () => {
  const { sums, after } = openSums();
  assert.equal(after("deposit").row, "1");
  for (let n = 0; n < 9_999; n++) sums.after([one("deposit", ["sum", n])]);
  assert.equal(after("deposit").row, "1");
  sums.after([one("deposit", ["sum", "one more"])]);
  assert.equal(after("deposit").row, "10002");
});

/** A committer on a store that behaves as a test says, and the store's rows of some sums. */
function openCommitter() {
  const store = createScriptedStore();
  const kv = store.wrap(new MemoryStore().kv);
  let ids = 0;
  const committer = createCommitter({
    kv,
    newBatchId: () => `${++ids}`,
    clock: createHandClock(),
    meter: createMetrics(),
  });
  const totals = async () => {
    const sums = new Map<string, bigint>();
    for (const { value } of await kv.list({ prefix: ["sum"], limit: 1_000 })) {
      for (const [field, [count = 0n]] of value ? decodeSum(value) : []) {
        sums.set(field, (sums.get(field) ?? 0n) + count);
      }
    }
    return Object.fromEntries(sums);
  };
  return { store, committer, totals };
}

const row = (name: string): Write => ({
  ...emptyWrite(),
  sets: [{ key: ["row", name], value: new Uint8Array() }],
});

Deno.test("sums: a separate increment is counted once, whatever happens to the write that carries it", async () => {
  const { store, committer, totals } = openCommitter();
  await committer.commit(row("there"));
  committer.count(one("refusal:a"));
  const refused = { ...row("there"), checks: [{ key: ["row", "there"], version: null }] };
  assert.equal(await committer.commit(refused), null);
  assert.deepEqual(await totals(), {});
  committer.count(one("refusal:a"));
  // Only markers are written.
  store.atomic = (write, real) =>
    write.sets.length === 1 && write.checks.length === 1
      ? real(write)
      : Promise.reject(new TypeError("connection refused"));
  await assert.rejects(committer.commit(row("other")));
  store.atomic = null;
  assert.deepEqual(await totals(), {});
  committer.count(one("refusal:a"));
  assert.notEqual(await committer.commit(row("third")), null);
  assert.deepEqual(await totals(), { "refusal:a": 3n });
  await committer.flush();
  assert.deepEqual(await totals(), { "refusal:a": 3n });
});

Deno.test("sums: a separate increment whose write may have landed is not counted again", async () => {
  const { store, committer, totals } = openCommitter();
  let isAway = false;
  store.atomic = async (write, real) => {
    if (!isAway) await real(write);
    isAway = true;
    throw new TypeError("connection lost");
  };
  committer.count(one("refusal:a"));
  await assert.rejects(committer.commit(row("first")));
  store.atomic = null;
  await committer.flush();
  assert.deepEqual(await totals(), { "refusal:a": 1n });
});

Deno.test("sums: of separate increments, five go with one write, and all of them in the end", async () => {
  const { store, committer, totals } = openCommitter();
  for (let n = 0; n < 12; n++) committer.count(one(`refusal:${n}`, ["sum", n]));
  await committer.flush();
  const rows = store.writes.map(({ sets }) => sets.filter(({ key }) => key[0] === "sum").length);
  assert.deepEqual(rows, [5, 5, 2]);
  assert.equal(Object.keys(await totals()).length, 12);
});

Deno.test("sums: combined writes add what each of them adds", async () => {
  const { store, committer, totals } = openCommitter();
  const gate = createGate();
  store.atomic = async (write, real) => {
    store.atomic = null;
    await gate.opened;
    return await real(write);
  };
  const fields = ["deposit", "charge", "charge", "charge", "refund"];
  const writes = fields.map((field, n) =>
    committer.commit({ ...row(`${n}`), additions: [one(field), one("all", ["sum", n])] })
  );
  gate.open();
  assert.ok((await Promise.all(writes)).every((version) => version !== null));
  assert.equal(store.writes.length, 2);
  assert.deepEqual(await totals(), { deposit: 1n, charge: 3n, refund: 1n, all: 5n });
});
