import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { type KeptKind, keptKinds } from "../../src/base/kept_kinds.ts";
import { withExpiry } from "../../src/store/expiry.ts";
import { logKey, projectKey, requestsPrefix } from "../../src/store/keys.ts";
import type { Key, Kv, Write } from "../../src/store/kv.ts";
import { expiringKinds } from "../../src/sweeps.ts";
import { countUnder, endingKinds, endingRow, putRows } from "../support/ending_rows.ts";
import { metricsToken, openMetered, scrape, whileAnswering } from "../support/prometheus.ts";
import { createScriptedStore } from "../support/store.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Rows of one kind that have ended, the first one longest ago. */
function ended({ projectId, clock }: World, kind: KeptKind, count: number): Write["sets"] {
  const make = endingKinds.get(kind) ?? assert.fail(kind);
  const rowOf = (n: number) =>
    make({ projectId, name: `old-${n}`, endsAt: clock.now() - 1_000 - (count - n) });
  return Array.from({ length: count }, (_, n) => rowOf(n)).flat();
}

function live({ projectId, clock }: World, kind: KeptKind): Write["sets"] {
  const make = endingKinds.get(kind) ?? assert.fail(kind);
  return make({ projectId, name: "live", endsAt: clock.now() + 3 * dayMs });
}

/** Writes ended rows of all kinds, and a live one of each. */
async function fill(world: World, each: number): Promise<void> {
  for (const kind of keptKinds) {
    await putRows(world.deps.kv, [...ended(world, kind, each), ...live(world, kind)]);
  }
}

const countsOf = (kv: Kv) => Promise.all(keptKinds.map((kind) => countUnder(kv, [kind])));
const onlyLive = keptKinds.map(() => 1);

/** Counts what a store is asked to write and to read. */
function counting() {
  const seen = { writes: 0, read: 0 };
  const wrap = (kv: Kv): Kv => ({
    ...kv,
    atomic: (write) => (seen.writes++, kv.atomic(write)),
    async list(options) {
      const rows = await kv.list(options);
      seen.read += rows.length;
      return rows;
    },
  });
  return { seen, wrap };
}

Deno.test("removal: every kind goes when its time is over, many rows in a write, and no live row", async () => {
  const { seen, wrap } = counting();
  using world = await createWorld({ wrapKv: wrap });
  assert.deepEqual([...endingKinds.keys()].toSorted(), keptKinds.toSorted());
  await world.app.sweep();
  const each = 1_000;
  await fill(world, each);
  Object.assign(seen, { writes: 0, read: 0 });
  await world.app.sweep();
  assert.deepEqual(await countsOf(world.deps.kv), onlyLive);
  assert.equal(await countUnder(world.deps.kv, ["log"]), 4, "those of the live delivery");
  // The least that a write removes are 25 sessions; of deliveries 40, of others 50 or more.
  assert.ok(seen.writes < keptKinds.length * each / 25, `${seen.writes} writes`);
});

Deno.test("removal: what one round leaves is removed by the next ones, without another sweep", async () => {
  let isSlow = false;
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async atomic(write) {
        if (isSlow) await world.clock.advance(200);
        return await kv.atomic(write);
      },
    }),
  });
  await fill(world, 400);
  isSlow = true;
  await world.app.sweep();
  isSlow = false;
  const left = (await countsOf(world.deps.kv)).reduce((sum, count) => sum + count, 0);
  assert.ok(left > 2 * keptKinds.length, `${left} rows are left after the first round`);
  await world.clock.advance(1_000);
  await world.until(async () => (await countsOf(world.deps.kv)).every((count) => count === 1));
});

Deno.test("removal: while calls are under way its rounds are short, and all kinds get their turns", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  await fill(world, 60);
  await whileAnswering(world, async () => {
    store.atomic = async (write, real) => {
      await world.clock.advance(25);
      return await real(write);
    };
    store.writes.length = 0;
    await world.app.sweep();
    const removing = store.writes.filter(({ deletes }) => deletes.length > 20);
    assert.ok(removing.length <= 3, `${removing.length} pages in the first round`);
    // One kind after the other would take 20 rounds of three pages.
    for (let n = 0; n < 12; n++) await world.clock.advance(200);
    const begun = (await countsOf(world.deps.kv)).filter((count) => count < 61).length;
    assert.ok(begun > keptKinds.length / 2, `${begun} kinds have got a turn`);
    store.atomic = null;
    await world.until(async () => (await countsOf(world.deps.kv)).every((count) => count === 1));
  });
});

Deno.test("removal: a busy project and a thousand quiet ones do not wait for each other", async () => {
  let isSlow = false;
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async atomic(write) {
        if (isSlow) await world.clock.advance(100);
        return await kv.atomic(write);
      },
    }),
  });
  const { kv } = world.deps;
  const { value } = await kv.get(projectKey(world.projectId));
  const settings = JSON.parse(new TextDecoder().decode(value ?? undefined));
  // Half of them are looked at before the busy one, and half after it.
  const quiet = Array.from(
    { length: 1_000 },
    (_, n) => `pw_${n % 2 ? "Z" : "0"}${String(n).padStart(25, "0")}`,
  );
  await putRows(
    kv,
    quiet.map((id) => ({ key: projectKey(id), value: toBytes({ ...settings, id }) })),
  );
  await putRows(kv, ended(world, "requests", 20_000));
  const late = quiet.slice(400, 420);
  await putRows(kv, late.flatMap((id) => ended({ ...world, projectId: id }, "requests", 1)));
  isSlow = true;
  await world.app.sweep();
  const ofQuiet = async () =>
    (await Promise.all(late.map((id) => countUnder(kv, requestsPrefix(id))))).some((rows) => rows);
  while (await ofQuiet()) await world.clock.advance(250);
  isSlow = false;
  const left = await countUnder(kv, requestsPrefix(world.projectId));
  assert.ok(left > 10_000 && left < 19_000, `${left} rows of the busy project are left`);
});

/** Two services that know that they share a store, and have beaten. */
async function twoProcesses(store = createScriptedStore()) {
  const env = { METRICS_TOKEN: metricsToken };
  const one = await createWorld({ isShared: true, env, wrapKv: store.wrap });
  const two = await createWorld({ shareWith: one, env });
  await one.app.beat();
  await two.app.beat();
  await one.app.beat();
  return {
    one,
    two,
    store,
    [Symbol.dispose]() {
      two[Symbol.dispose]();
      one[Symbol.dispose]();
    },
  };
}

async function removedBy(world: World): Promise<number> {
  const { series } = await scrape(world);
  return keptKinds.reduce(
    (sum, kind) => sum + (series.get(`farebox_rows_removed_total{kind="${kind}"}`) ?? 0),
    0,
  );
}

Deno.test("removal: processes of one store share the work, and nothing is removed twice", async () => {
  using processes = await twoProcesses();
  const { one, two } = processes;
  const each = 200;
  await fill(one, each);
  await putRows(one.deps.kv, ended({ ...one, projectId: two.projectId }, "requests", each));
  await Promise.all([one.app.sweep(), two.app.sweep()]);
  assert.deepEqual(await countsOf(one.deps.kv), onlyLive);
  const [byOne, byTwo] = [await removedBy(one), await removedBy(two)];
  const all = (keptKinds.length + 1) * each;
  assert.equal(byOne + byTwo, all);
  assert.ok(Math.min(byOne, byTwo) > all / 10, `${byOne} and ${byTwo}`);
});

Deno.test("removal: what a process that dies leaves, others remove seconds later", async () => {
  const store = createScriptedStore();
  using processes = await twoProcesses(store);
  const { one, two } = processes;
  await fill(two, 300);
  let writes = 0;
  store.atomic = async (write, real) => {
    if (write.deletes.some(([name]) => name === "expiry") && ++writes > 5) store.dead = true;
    if (store.dead) throw new TypeError("dead");
    return await real(write);
  };
  await assert.rejects(one.app.sweep());
  one.app.leave = () => Promise.resolve();
  await two.app.sweep();
  const left = (await countsOf(two.deps.kv)).reduce((sum, count) => sum + count, 0);
  assert.ok(left > 2 * keptKinds.length, "its parts are not taken at once");
  // Others take a silent process for dead after six seconds.
  for (let n = 0; n < 8; n++) {
    await two.clock.advance(1_000);
    await two.app.beat();
  }
  await two.app.sweep();
  assert.deepEqual(await countsOf(two.deps.kv), onlyLive);
});

Deno.test("removal: a row that changes while its page is removed stays, and the others go", async () => {
  const [kind] = expiringKinds;
  assert.ok(kind);
  let onRead = async () => {};
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async getMany(keys) {
        const rows = await kv.getMany(keys);
        if (keys.some((key) => key.at(-1) === "row-7")) await onRead();
        return rows;
      },
    }),
  });
  const { deps: { kv }, clock, projectId } = world;
  const endsAt = clock.now() - 1;
  const rows = Array.from(
    { length: 30 },
    (_, n) => withExpiry(kind, endingRow(kind, { projectId, name: `row-${n}`, endsAt })),
  );
  await putRows(kv, rows.flat());
  onRead = async () => {
    onRead = async () => {};
    const later = endingRow(kind, { projectId, name: "row-7", endsAt: endsAt + dayMs });
    await putRows(kv, withExpiry(kind, later));
  };
  await world.app.sweep();
  const left = await kv.list({ prefix: kind.prefix, limit: 100 });
  assert.deepEqual(left.map(({ key }) => key.at(-1)), ["row-7"]);
  await clock.advance(dayMs);
  await world.app.sweep();
  assert.equal(await countUnder(kv, kind.prefix), 0);
  assert.equal(await countUnder(kv, ["expiry"]), 0);
});

Deno.test("removal: what only a newer version knows keeps nothing, however much it is", async () => {
  let isSlow = false;
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async list(options) {
        if (isSlow && options.prefix[0] === "expiry") await world.clock.advance(200);
        return await kv.list(options);
      },
    }),
  });
  const { kv } = world.deps;
  const unknown = (part: number, n: number): Key => ["expiry", part, n, "of_a_newer_version", n];
  const rows = Array.from({ length: 8 * 400 }, (_, n) => ({
    key: unknown(n % 8, n),
    value: new Uint8Array(),
  }));
  await putRows(kv, rows);
  await fill(world, 10);
  isSlow = true;
  await world.app.sweep();
  const [kind] = expiringKinds;
  assert.equal(await countUnder(kv, kind?.prefix ?? []), 11, "one round does not come so far");
  for (let n = 0; n < 8; n++) await world.app.sweep();
  assert.deepEqual(await countsOf(kv), onlyLive);
  assert.equal(await countUnder(kv, ["expiry"]), rows.length + expiringKinds.length);
});

Deno.test("removal: a clock that was set back removes nothing before its time", async () => {
  using world = await createWorld();
  await fill(world, 5);
  world.clock.set(-3 * dayMs);
  await world.app.sweep();
  assert.deepEqual(await countsOf(world.deps.kv), keptKinds.map(() => 6));
  world.clock.set(3 * dayMs);
  await world.app.sweep();
  assert.deepEqual(await countsOf(world.deps.kv), onlyLive);
});

Deno.test("removal: the requests of a project go by the days that it keeps them now", async () => {
  using world = await createWorld();
  const keepFor = (requestLogDays: number) =>
    world.json(`/v1/admin/projects/${world.projectId}`, {
      method: "PATCH",
      key: adminKey,
      body: { requestLogDays },
    });
  await putRows(world.deps.kv, ended(world, "requests", 10));
  await keepFor(60);
  await world.app.sweep();
  assert.equal(await countUnder(world.deps.kv, ["requests"]), 10);
  await keepFor(5);
  await world.app.sweep();
  assert.equal(await countUnder(world.deps.kv, ["requests"]), 0);
});

Deno.test("removal: rows of the log without a delivery do not keep older ones", async () => {
  using world = await createWorld();
  const { kv } = world.deps;
  const stray = Array.from({ length: 60 }, (_, n) => ({
    key: logKey(world.projectId, "success * *", `dly_0000000000000000000000${1000 + n}`),
    value: new Uint8Array(),
  }));
  await putRows(kv, [...stray, ...ended(world, "delivery", 60)]);
  await world.app.sweep();
  assert.deepEqual([await countUnder(kv, ["log"]), await countUnder(kv, ["delivery"])], [0, 0]);
});

Deno.test("removal: an error of one module keeps no other from its work", async () => {
  using world = await createWorld();
  const { kv } = world.deps;
  await putRows(kv, [
    { key: ["redelivery_job", world.projectId, "job_unreadable"], value: Uint8Array.of(1, 2) },
    { key: projectKey("pw_unreadable"), value: Uint8Array.of(1, 2) },
  ]);
  await fill(world, 5);
  await assert.rejects(world.app.sweep());
  const left = await countsOf(kv);
  const job = keptKinds.indexOf("redelivery_job");
  assert.deepEqual(left, onlyLive.with(job, 2));
});

Deno.test("removal: what waits is a metric, and a line of the log after ten minutes", async () => {
  let isSlow = false;
  using world = await openMetered({
    wrapKv: (kv: Kv): Kv => ({
      ...kv,
      async atomic(write) {
        if (isSlow && write.deletes.some(([name]) => name === "expiry")) {
          await world.clock.advance(4_000);
        }
        return await kv.atomic(write);
      },
    }),
  });
  await putRows(world.deps.kv, ended(world, "link", 2_000));
  await world.clock.advance(20 * 60_000);
  isSlow = true;
  await world.app.sweep();
  isSlow = false;
  const series = 'farebox_removal_behind_seconds{kind="link"}';
  const behind = (await scrape(world)).series.get(series) ?? 0;
  assert.ok(behind > 1_200 && behind < 1_300, `${behind} s`);
  const told = world.logged.filter(({ event }) => event === "removal_behind");
  assert.deepEqual(told.map(({ kinds }) => kinds), [["link"]]);
  await world.clock.advance(1_000);
  await world.until(async () => await countUnder(world.deps.kv, ["link"]) === 0);
  await world.app.sweep();
  const { series: after } = await scrape(world);
  assert.equal(after.get(series), 0);
  assert.equal(after.get('farebox_rows_removed_total{kind="link"}'), 2_000);
});
