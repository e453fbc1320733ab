import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { fromDecimal } from "../../src/base/money.ts";
import { carryForward, readStored } from "../../src/ledger/carry_forward.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { entryKey } from "../../src/store/keys.ts";
import type { Write } from "../../src/store/kv.ts";
import { archivable, dayMs } from "../support/archive.ts";
import { chat } from "../support/chat.ts";
import { mulberry32 } from "../support/random.ts";
import { move, verify } from "../support/verify.ts";
import { createWorld, type World } from "../support/world.ts";

// Accounts are archived in steps, some of which never land, between other operations. After each
// step everything is added up by a ledger of the test's own. Each planted defect must be found.

type Change = (write: Write, world: World) => Write | Promise<Write>;
type Random = () => number;

async function storedEntries(world: World): Promise<Entry[]> {
  const rows = await world.deps.kv.list({ prefix: ["entry"], limit: 1_000 });
  return rows.flatMap(({ value }) => (value ? [fromBytes<Entry>(value)] : []));
}

async function operateAtRandom(world: World, random: Random): Promise<void> {
  const user = random() < 0.5 ? "ada" : "bob";
  const chosen = random();
  if (chosen < 0.6) await chat(world, { user });
  else if (chosen < 0.8) await move(world, "/v1/user/balance/deposit", { user, amount: "1" });
  else {
    const usages = (await world.activities(user)).filter(({ kind }) => kind === "usage");
    const activityId = usages[Math.floor(random() * usages.length)]?.id;
    if (activityId === undefined) return;
    // It may have been refunded before, or be archived.
    await world.json("/v1/user/refund", { body: { user, activityId } });
  }
  if (random() < 0.5) await world.clock.advance(Math.round(random() * 20) * dayMs);
}

/** Returns what is wrong; null where everything adds up. */
async function audit(world: World, sealed: Map<string, Entry>): Promise<string | null> {
  await world.clock.advance(61_000);
  const stored = await storedEntries(world);
  for (const user of ["ada", "bob"]) {
    const own = stored.filter((entry) => entry.user === user);
    const sum = own.reduce((total, { delta }) => total + fromDecimal(delta), 0n);
    if (sum !== fromDecimal((await world.balance(user)).balance)) return `sum of ${user}`;
    const carried = own.find(({ kind }) => kind === "carried");
    const ids = new Set(own.filter(({ kind }) => kind !== "carried").map(({ id }) => id));
    const gone = [...sealed.values()].filter((entry) => entry.user === user && !ids.has(entry.id));
    const last = own.reduce((most, { seq }) => Math.max(most, seq), 0);
    if (gone.length !== (carried?.carried?.entries ?? 0)) return `count of ${user}`;
    if (ids.size + gone.length !== last) return `an entry of ${user} is nowhere`;
  }
  const { faults } = await verify(world);
  return faults[0] ?? null;
}

async function archiveAtRandom(
  world: World,
  { random, sealed, change }: { random: Random; sealed: Map<string, Entry>; change: Change },
): Promise<void> {
  const { kv, committer } = world.deps;
  const { projectId } = world;
  const lines = (await archivable(world)).map((line) => JSON.parse(line) as Entry);
  const some = lines.slice(0, Math.ceil(random() * lines.length));
  for (const entry of some) sealed.set(entry.id, entry);
  for (const [user, own] of Map.groupBy(some, (entry) => entry.user)) {
    for (;;) {
      const rows = await kv.getMany(own.map(({ id }) => entryKey(projectId, id)));
      const entries = rows.flatMap((row) => readStored(row) ?? [])
        .filter(({ entry }) => entry.kind !== "carried");
      const step = await carryForward(kv, { projectId, user, entries });
      // As if the process had ended before the write.
      if (!step || random() < 0.3) break;
      assert.ok(await committer.commit(await change(step.write, world)));
    }
  }
}

/** Returns the first violation of a run, or null. */
async function run(seed: number, change: Change): Promise<string | null> {
  const random = mulberry32(seed);
  using world = await createWorld();
  const sealed = new Map<string, Entry>();
  for (const user of ["ada", "bob"]) await world.deposit(user, "5");
  for (let round = 0; round < 4; round++) {
    for (let n = 0; n < 12; n++) await operateAtRandom(world, random);
    await world.clock.advance(20 * dayMs);
    await archiveAtRandom(world, { random, sealed, change });
    const violation = await audit(world, sealed);
    if (violation !== null) return violation;
  }
  return null;
}

const editCarried = (write: Write, change: (entry: Entry) => Partial<Entry>): Write => ({
  ...write,
  sets: write.sets.map(({ key, value }) => {
    const entry = key[0] === "entry" ? fromBytes<Entry>(value) : null;
    if (entry?.kind !== "carried") return { key, value };
    return { key, value: toBytes({ ...entry, ...change(entry) }) };
  }),
});

const planted: Record<string, Change> = {
  "the sum is wrong by one": (write) => editCarried(write, ({ delta }) => ({ delta: `${delta}1` })),
  "the count is wrong by one": (write) =>
    editCarried(
      write,
      ({ carried }) => carried ? { carried: { ...carried, entries: carried.entries + 1 } } : {},
    ),
  "the entries that stay are lost": (write) => editCarried(write, () => ({ prev: null })),
  "an entry is removed that no file has": async (write, world) => {
    const named = new Set([...write.deletes, ...write.sets.map(({ key }) => key)].map(String));
    const other = (await storedEntries(world)).find(({ kind, id }) =>
      kind === "usage" && !named.has(String(entryKey(world.projectId, id)))
    );
    if (!other) return write;
    return { ...write, deletes: [...write.deletes, entryKey(world.projectId, other.id)] };
  },
  "the carried entry before it stays": (write) => ({
    ...write,
    deletes: write.deletes.slice(0, -1 - write.sets.length),
  }),
};

Deno.test("archive: at random, with steps that never land, everything adds up", async () => {
  for (let seed = 1; seed <= 6; seed++) {
    assert.equal(await run(seed, (write) => write), null, `seed ${seed}`);
  }
});

for (const [name, change] of Object.entries(planted)) {
  Deno.test(`archive: the planted defect "${name}" is found`, async () => {
    for (let seed = 1; seed <= 3; seed++) {
      if (await run(seed, change) !== null) return;
    }
    assert.fail("not within 3 seeds");
  });
}
