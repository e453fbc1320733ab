import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { createIds } from "../../src/base/ids.ts";
import { toAmount } from "../../src/base/money.ts";
import { toBytes } from "../../src/base/json.ts";
import { bySystem } from "../../src/events/event.ts";
import { type AccountRef, decodeAccount } from "../../src/ledger/account.ts";
import { type AccountQueue, createAccountQueue } from "../../src/ledger/account_queue.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { type ProjectSnapshot, readProject } from "../../src/projects/store.ts";
import { createCommitter } from "../../src/store/commit.ts";
import { accountKey, allRowWaitersPrefix, projectKey } from "../../src/store/keys.ts";
import { emptyWrite, type Kv } from "../../src/store/kv.ts";
import { batchReads } from "../../src/store/read_batcher.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { noOthers } from "../support/holders.ts";
import { mulberry32 } from "../support/random.ts";
import { createWorld } from "../support/world.ts";

// Processes that write one account at once, on a store that is 20 ms away by a clock that moves
// when there is nothing else to do.

/** Simulated time: the next timer is due as soon as everything else waits. */
function createRunningClock() {
  let now = 0;
  const timers = new Set<{ at: number; work: () => void }>();
  const after = (ms: number, work: () => void) => {
    const timer = { at: now + ms, work };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  return {
    now: () => now,
    elapsed: () => now,
    after,
    sleep: (ms: number) => new Promise<void>((resolve) => void after(ms, resolve)),
    async run(isDone: () => boolean, untilMs: number): Promise<void> {
      while (!isDone() && now < untilMs) {
        if (timers.size > 0) now = Math.max(now, Math.min(...[...timers].map(({ at }) => at)));
        for (const timer of [...timers].filter((timer) => timer.at <= now)) {
          timers.delete(timer);
          timer.work();
        }
        // Everything that follows at once: the store answers without a wait of its own.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

type RunningClock = ReturnType<typeof createRunningClock>;

interface Member {
  queue: AccountQueue;
  dead: boolean;
  /** How often it asked who waits, and how many of its writes were refused. */
  looks: number;
  refused: number;
}

const project = await snapshotOfProject();

async function snapshotOfProject(): Promise<ProjectSnapshot["project"]> {
  using world = await createWorld();
  const snapshot = await readProject(world.deps.kv, world.projectId);
  if (!snapshot) throw new Error("it was created");
  return snapshot.project;
}

/** Processes on one store, each `wayMs` from it. */
function openFleet(count: number, wayMs = 10) {
  const clock = createRunningClock();
  const store = new MemoryStore({ inFlight: 6, namesFailed: true });
  const version = store.commit({
    ...emptyWrite(),
    sets: [{ key: projectKey(project.id), value: toBytes(project) }],
  });
  const snapshot = { project, version: version ?? "" } as ProjectSnapshot;
  const members = Array.from({ length: count }, (_, n): Member => {
    const member = { dead: false, looks: 0, refused: 0 } as Member;
    const far = async <T>(work: () => T): Promise<T> => {
      await clock.sleep(wayMs);
      const value = member.dead ? null : work();
      await clock.sleep(wayMs);
      return value === null && member.dead ? await new Promise<T>(() => {}) : value as T;
    };
    const line: Kv = {
      ...store.kv,
      get: (key) => far(() => store.read(key)),
      getMany: (keys) => far(() => keys.map((key) => store.read(key))),
      list(options) {
        if (options.prefix[0] === allRowWaitersPrefix[0]) member.looks++;
        return far(() => store.list(options));
      },
      atomic: (write) => far(() => store.commit(write)),
      atomicOrFailed: (write) =>
        far(() => {
          const outcome = store.commitOrFailed(write);
          if (typeof outcome !== "string") member.refused++;
          return outcome;
        }),
    };
    const random = mulberry32(n + 1);
    const id = createIds(clock.now, random);
    const kv = batchReads(line, clock);
    const metrics = createMetrics();
    const committer = createCommitter({ kv, newBatchId: () => id("batch"), clock, meter: metrics });
    const randomBytes = (length: number) =>
      Uint8Array.from({ length }, () => Math.floor(random() * 256));
    const projectCache = { current: () => snapshot, refresh: () => Promise.resolve(snapshot) };
    member.queue = createAccountQueue(
      { kv, committer, clock, id, randomBytes, metrics, holders: noOthers },
      { projectCache: projectCache as never, topUsers: { observe() {} } },
    );
    return member;
  });
  return { clock, store, members };
}

const ref = { projectId: project.id, user: "hot" };
const unit = toAmount(1n);

const credit = (queue: AccountQueue, of: AccountRef = ref) =>
  queue.run(of, {
    reads: [],
    estimatedBytes: 2048,
    apply(tx) {
      tx.credit(unit, { kind: "deposit" }, { trigger: bySystem });
      return { value: undefined };
    },
  });

interface Done {
  /** Operations of each process. */
  done: number[];
  failed: number;
  /** How long operations took, in ms, in order. */
  waits: number[];
}

/** Lets callers work for a time, each one operation after the other; `during` happens halfway. */
async function work(
  { clock, members }: { clock: RunningClock; members: Member[] },
  { callers, ms = 2_000, pauseMs = 1, during }: {
    callers: readonly number[];
    ms?: number;
    pauseMs?: number;
    during?: () => void;
  },
): Promise<Done> {
  const result: Done = { done: members.map(() => 0), failed: 0, waits: [] };
  const until = clock.elapsed() + ms;
  let running = 0;
  const caller = async (at: number) => {
    const member = members[at] as Member;
    running++;
    while (clock.elapsed() < until && !member.dead) {
      const startedAt = clock.elapsed();
      await credit(member.queue).catch(() => void result.failed++);
      result.waits.push(clock.elapsed() - startedAt);
      result.done[at] = (result.done[at] ?? 0) + 1;
      await clock.sleep(pauseMs);
    }
    running--;
  };
  callers.forEach((count, at) => {
    for (let n = 0; n < count; n++) caller(at);
  });
  if (during) clock.after(ms / 2, during);
  const lost = () => members.reduce((sum, { dead }, at) => sum + (dead ? callers[at] ?? 0 : 0), 0);
  await clock.run(() => running <= lost(), until + 30_000);
  assert.ok(running <= lost(), "every operation ends");
  result.waits.sort((a, b) => a - b);
  return result;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
const slowest = ({ waits }: Done) => waits[Math.floor(waits.length * 0.99)] ?? NaN;

/** Whether the account has exactly what was acknowledged. */
function checkBalance(store: MemoryStore, { done, failed }: Done): void {
  const { value } = store.read(accountKey(ref.projectId, ref.user));
  assert.equal(Number(decodeAccount(value).balance), sum(done) - failed);
}

const callersInAll = 240;

/** What processes do with one account once they have met, and what one does. */
async function compare(count: number, wayMs: number) {
  const one = await work(openFleet(1, wayMs), { callers: [callersInAll] });
  const fleet = openFleet(count, wayMs);
  const callers = fleet.members.map(() => callersInAll / count);
  await work(fleet, { callers, ms: 1_000 });
  return { one, all: await work(fleet, { callers }) };
}

function checkShares({ done, failed }: Done): void {
  assert.equal(failed, 0);
  assert.ok(Math.min(...done) > 0.5 * Math.max(...done), `each has its share: ${done}`);
}

for (const [count, bar] of [[2, 0.8], [3, 0.8], [4, 0.75]] as const) {
  Deno.test(`turns: ${count} processes far from the store do ${bar} of what one does with an account`, async () => {
    const { one, all } = await compare(count, 10);
    checkShares(all);
    assert.ok(sum(all.done) >= bar * sum(one.done), `${all.done} of ${one.done}`);
    assert.ok(slowest(all) <= 2 * slowest(one), `${slowest(all)} ms, alone ${slowest(one)} ms`);
  });

  Deno.test(`turns: ${count} processes near the store share an account`, async () => {
    const { all } = await compare(count, 1);
    checkShares(all);
    assert.ok(slowest(all) <= 30 * count, `${slowest(all)} ms`);
  });
}

Deno.test("turns: ten callers of one process are served beside 290 of another", async () => {
  const fleet = openFleet(2);
  await work(fleet, { callers: [10, 290], ms: 1_000 });
  const { done, waits, failed } = await work(fleet, { callers: [10, 290] });
  assert.equal(failed, 0);
  // A call of the ten takes at most as long as one of the 290.
  assert.ok((done[0] ?? 0) / 10 >= 0.5 * (done[1] ?? 0) / 290, `${done}`);
  assert.ok((waits.at(-1) ?? 0) < 1_500, `${waits.at(-1)}`);
});

Deno.test("turns: two callers on two processes take no longer than without turns", async () => {
  const fleet = openFleet(2);
  const { waits, failed } = await work(fleet, { callers: [1, 1] });
  assert.equal(failed, 0);
  assert.ok((waits.at(-1) ?? 0) < 600, `${waits.at(-1)}`);
});

Deno.test("turns: a process that dies with the turn is passed over, and nothing is lost", async () => {
  for (let victim = 0; victim < 3; victim++) {
    const fleet = openFleet(3);
    const dies = fleet.members[victim] as Member;
    const all = await work(fleet, {
      callers: [50, 50, 50],
      during: () => void (dies.dead = true),
    });
    assert.equal(all.failed, 0);
    assert.ok((all.waits.at(-1) ?? 0) < 2_000, `${all.waits.at(-1)} ms`);
    const { value } = fleet.store.read(accountKey(ref.projectId, ref.user));
    const balance = Number(decodeAccount(value).balance);
    assert.ok(balance >= sum(all.done), `${balance} of ${all.done}`);
  }
});

Deno.test("turns: a process that leaves hands over, and the others go on", async () => {
  const fleet = openFleet(2);
  await work(fleet, { callers: [120, 120], ms: 1_000 });
  // The first has no callers any more.
  const rest = await work(fleet, { callers: [0, 120], ms: 1_000 });
  assert.equal(rest.failed, 0);
  assert.ok((rest.waits.at(-1) ?? 0) < 700, `${rest.waits.at(-1)} ms`);
});

Deno.test("turns: an account that one process writes costs at most four reads a second", async () => {
  const fleet = openFleet(2);
  const looks = () => sum(fleet.members.map((member) => member.looks + member.refused));
  const quiet = await work(fleet, { callers: [1, 0], pauseMs: 300 });
  assert.equal(looks(), 0, "none where it is written now and then");
  const busy = await work(fleet, { callers: [100, 0] });
  assert.ok(looks() <= 9, `${looks()} in two seconds`);
  assert.equal(fleet.store.list({ prefix: ["row_turn"], limit: 1 }).length, 0);
  assert.equal(fleet.store.list({ prefix: ["row_waiter"], limit: 1 }).length, 0);
  checkBalance(fleet.store, { ...busy, done: [...quiet.done, ...busy.done] });
});

Deno.test("turns: connections of one wallet do not refuse each other within a process", async () => {
  const { clock, store, members: [member] } = openFleet(1);
  const wallet = { personId: "per_1", currency: "usd" };
  let done = 0;
  for (const connection of ["one", "two", "three"]) {
    for (let caller = 0; caller < 10; caller++) {
      const of = { ...ref, wallet: { ...wallet, connectionId: connection } };
      credit((member as Member).queue, of).then(() => done++);
    }
  }
  await clock.run(() => done === 30, 10_000);
  assert.equal(done, 30);
  assert.equal(member?.refused, 0);
  assert.ok(clock.elapsed() < 400, `${clock.elapsed()} ms`);
  const { value } = store.read(accountKey(wallet.personId, wallet.currency));
  assert.equal(Number(decodeAccount(value).balance), 30);
});
