import assert from "node:assert/strict";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createCommitter } from "../../src/store/commit.ts";
import type { Key, Kv, Write } from "../../src/store/kv.ts";
import { decodeSum } from "../../src/store/sums.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { createHandClock } from "../support/clock.ts";

// The group commit over a store that is far away: several writes under way, and a store that names
// the checks that failed.

interface Sent {
  write: Write;
  /** Lets it reach the store. */
  land(): void;
}

/** A committer on a store whose writes wait until the test lets them land. */
function openFar({ inFlight = 4, namesFailed = true } = {}) {
  const store = new MemoryStore({ inFlight, namesFailed });
  const sent: Sent[] = [];
  const held = <T>(write: Write, work: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      const land = () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      };
      sent.push({ write, land });
    });
  const kv: Kv = {
    ...store.kv,
    atomic: (write) => held(write, () => store.commit(write)),
    ...(namesFailed
      ? { atomicOrFailed: (write) => held(write, () => store.commitOrFailed(write)) }
      : {}),
  };
  const clock = createHandClock();
  let ids = 0;
  const newBatchId = () => `${++ids}`;
  const committer = createCommitter({ kv, newBatchId, clock, meter: createMetrics() });
  return { store, sent, clock, committer };
}

const bytes = (text: string) => new TextEncoder().encode(text);
const put = (key: Key, value = "x", version?: string | null): Write => ({
  checks: version === undefined ? [] : [{ key, version }],
  sets: [{ key, value: bytes(value) }],
  deletes: [],
});
const keysOf = ({ write }: Sent) =>
  write.sets.map(({ key }) => key.join(" ")).filter((key) => !key.startsWith("commit"));

Deno.test("far commit: another write goes out beside a slow one, and not before some ms", async () => {
  const { sent, clock, committer } = openFar();
  const first = committer.commit(put(["a"]));
  const others = [committer.commit(put(["b"])), committer.commit(put(["c"]))];
  assert.deepEqual(sent.map(keysOf), [["a"]]);
  await clock.advance(5);
  assert.deepEqual(sent.map(keysOf), [["a"], ["b", "c"]]);
  sent[1]?.land();
  for (const version of await Promise.all(others)) assert.ok(version);
  sent[0]?.land();
  assert.ok(await first);
  await committer.idle();
});

Deno.test("far commit: no more are under way than the store wants", async () => {
  const { sent, clock, committer } = openFar({ inFlight: 2 });
  const all = [];
  for (const name of ["a", "b", "c"]) {
    all.push(committer.commit(put([name])));
    await clock.advance(50);
  }
  assert.deepEqual(sent.map(keysOf), [["a"], ["b"]]);
  sent[0]?.land();
  await clock.advance(1);
  assert.deepEqual(sent.map(keysOf), [["a"], ["b"], ["c"]]);
  for (const { land } of sent) land();
  await Promise.all(all);
});

Deno.test("far commit: a later write of a row does not overtake one that is under way", async () => {
  const { store, sent, clock, committer } = openFar();
  const older = committer.commit(put(["row"], "older"));
  const newer = committer.commit(put(["row"], "newer"));
  const other = committer.commit(put(["other"]));
  await clock.advance(10);
  assert.deepEqual(sent.map(keysOf), [["row"], ["other"]], "the newer one waits");
  sent[1]?.land();
  await other;
  sent[0]?.land();
  await older;
  await clock.advance(10);
  sent[2]?.land();
  await newer;
  assert.equal(new TextDecoder().decode(store.read(["row"]).value ?? bytes("")), "newer");
});

for (const namesFailed of [true, false]) {
  const how = namesFailed ? "names the failed checks" : "does not name them";
  Deno.test(`far commit: of a refused batch the others go again together, where a store ${how}`, async () => {
    const { store, sent, clock, committer } = openFar({ inFlight: 1, namesFailed });
    store.commit(put(["stale"]));
    const first = committer.commit(put(["first"]));
    const sum = { key: ["sum"], field: "writes", values: [1n] };
    const members = ["a", "stale", "b", "c"].map((name) =>
      committer.commit({ ...put([name], "new", null), additions: [sum] })
    );
    for (let at = 0; at < 3; at++) {
      sent[at]?.land();
      await clock.advance(1);
    }
    const [a, stale, b, c] = await Promise.all(members);
    assert.ok(await first && a && b && c);
    assert.equal(stale, null);
    assert.equal(sent.length, 3, "one refused, and one for all others");
    const [row] = store.list({ prefix: ["sum"], limit: 10 });
    assert.deepEqual(decodeSum(row?.value ?? bytes("{}")).get("writes"), [3n]);
  });
}

Deno.test("far commit: sums of writes that are under way at once add up", async () => {
  const { store, sent, clock, committer } = openFar();
  const sum = { key: ["sum"], field: "writes", values: [1n] };
  const all = Array.from({ length: 20 }, async (_, n) => {
    const version = committer.commit({ ...put([`${n}`]), additions: [sum] });
    await clock.advance(3);
    return await version;
  });
  for (let turn = 0; turn < 20; turn++) {
    await clock.advance(5);
    // In another order than they were sent.
    sent.splice(0).reverse().forEach(({ land }) => land());
  }
  for (const version of await Promise.all(all)) assert.ok(version);
  const rows = store.list({ prefix: ["sum"], limit: 100 });
  const total = rows.reduce(
    (whole, { value }) => whole + (decodeSum(value ?? bytes("{}")).get("writes")?.[0] ?? 0n),
    0n,
  );
  assert.equal(total, 20n);
});

for (const namesFailed of [true, false]) {
  const how = namesFailed ? "names the failed checks" : "does not name them";
  Deno.test(`far commit: a batch that is refused again and again stays together, where a store ${how}`, async () => {
    const { store, sent, clock, committer } = openFar({ inFlight: 1, namesFailed });
    const names = Array.from({ length: 40 }, (_, n) => `row ${n}`);
    const first = committer.commit(put(["first"]));
    const members = names.map((name) => committer.commit(put([name], "new", null)));
    sent[0]?.land();
    await first;
    await clock.advance(1);
    // Somebody else writes one of the rows before each of ten attempts.
    for (let at = 0; at < 10; at++) {
      store.commit(put([names[at] ?? ""], "other"));
      sent[at + 1]?.land();
      await clock.advance(1);
    }
    sent[11]?.land();
    const versions = await Promise.all(members);
    assert.deepEqual(versions.map((version) => version !== null), names.map((_, at) => at >= 10));
    assert.equal(sent.length, 12, "one write more for each that was refused");
  });
}
