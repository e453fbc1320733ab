import { createIds } from "../../src/base/ids.ts";
import { toBytes } from "../../src/base/json.ts";
import { type KeptKind, keptKinds } from "../../src/base/kept_kinds.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Deps } from "../../src/deps.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { openPostgres } from "../../src/platform/postgres.ts";
import { createCommitter } from "../../src/store/commit.ts";
import { projectKey } from "../../src/store/keys.ts";
import type { Kv } from "../../src/store/kv.ts";
import { createRemoval } from "../../src/store/removal.ts";
import { createRemovers } from "../../src/sweeps.ts";
import { endingKinds, putRows } from "../../tests/support/ending_rows.ts";
import { findPostgres, startPostgres, waits } from "../../tests/support/postgres.ts";
import { chatLoad, startPaid } from "./paid.ts";
import { type Figure, show } from "./figures.ts";
import { runLoad, startProcess } from "./processes.ts";
import { adminKey, makeFolder, type Service, startService } from "./service.ts";

const projectId = "pw_00000000000000000000000000";
const id = createIds(Date.now, Math.random);

/** What the removal needs of a process. */
function depsOf(kv: Kv): Deps {
  const clock: Deps["clock"] = {
    now: Date.now,
    elapsed: () => performance.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    after(ms, work) {
      const timer = setTimeout(work, ms);
      return () => clearTimeout(timer);
    },
  };
  const metrics = createMetrics();
  const config = readConfig(
    { BASE_URL: "http://127.0.0.1:9", ADMIN_KEY: adminKey, SECRETS_KEY: btoa("0".repeat(32)) },
    { dev: false, readFile: () => "", newAdminKey: () => adminKey },
  );
  const committer = createCommitter({ kv, newBatchId: () => id("batch"), clock, meter: metrics });
  const log: Deps["log"] = (_, event, fields) => console.log(event, fields);
  return { kv, committer, clock, metrics, config, log } as Deps;
}

const rowsPerPut = 2_000;

/** Writes rows of a kind that end at a time, or in the milliseconds before it. */
async function fill(
  kv: Kv,
  kind: KeptKind,
  { count, endsAt = Date.now() }: { count: number; endsAt?: number },
): Promise<void> {
  const make = endingKinds.get(kind);
  for (let made = 0; make && made < count; made += rowsPerPut) {
    const rows = Array.from({ length: Math.min(rowsPerPut, count - made) }, (_, at) => {
      const n = made + at;
      return make({ projectId, name: `${kind}-${n}`, endsAt: endsAt - n % 1_000 });
    });
    await putRows(kv, rows.flat());
  }
}

/** Removes all that has ended, by as many processes; returns how long that took, in s. */
async function timeRemoval(kvs: readonly Kv[], kind: KeptKind, count: number): Promise<number> {
  const isBusy = () => false;
  const removals = kvs.map((kv, rank) => {
    const deps = depsOf(kv);
    const owns = (part: number) => part % kvs.length === rank;
    const removal = createRemoval(deps, { removers: createRemovers(deps), owns, isBusy });
    return { removal, removed: deps.metrics.removedRows[kind] };
  });
  const startedAt = performance.now();
  const removed = () => removals.reduce((sum, { removed }) => sum + removed.value, 0);
  await Promise.all(removals.map(({ removal }) => removal.run()));
  while (removed() < count) await waits.pause(10);
  for (const { removal } of removals) removal.stop();
  return (performance.now() - startedAt) / 1000;
}

async function measureKinds(
  name: string,
  kvs: readonly Kv[],
  count: number,
): Promise<Figure[]> {
  const [kv] = kvs;
  if (!kv) return [];
  await putRows(kv, [{ key: projectKey(projectId), value: toBytes({ id: projectId }) }]);
  const figures: Figure[] = [];
  for (const kind of keptKinds) {
    await fill(kv, kind, { count });
    const rate = count / await timeRemoval(kvs, kind, count);
    const bar = "100,000 a minute";
    const figure = { name: `${name}: ${kind} removed`, value: rate, unit: "rows/s", bar };
    figures.push({ ...figure, ok: rate * 60 >= 100_000 });
    figures.slice(-1).forEach(show);
  }
  return figures;
}

async function measurePostgres(count: number): Promise<Figure[]> {
  if (findPostgres() === null) return [];
  await using server = await startPostgres();
  const url = await server.newSchema();
  const open = async () => (await openPostgres(url, { password: null, waits })).kv;
  const [one, two] = [await open(), await open()];
  try {
    return [
      ...await measureKinds("PostgreSQL", [one], count),
      ...await measureKinds("PostgreSQL, two processes", [one, two], count),
    ];
  } finally {
    one.close();
    two.close();
  }
}

const besideRows = 100_000;
const besideKinds = ["kept_id", "link", "cached_response"] as const;
/** How long a service needs to be as fast as it gets, and how long chats are measured, in s. */
const warmUpSeconds = 15;
const measuredSeconds = 3;
/** How long after their end the removal of rows has begun, in ms. */
const begunAfterMs = 16_000;

/** Chats beside nothing, and beside the removal of rows that end all at once. */
async function measureBeside(): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts");
  using folder = makeFolder();
  let like: Pick<Service, "projectId" | "key">;
  {
    await using service = await startPaid(upstream.port, folder.path);
    like = { projectId: service.projectId, key: service.key };
  }
  const kv = denoKv(await Deno.openKv(`${folder.path}/bench.kv`));
  const endsAt = Date.now() + 60_000;
  for (const kind of besideKinds) await fill(kv, kind, { count: besideRows, endsAt });
  kv.close();
  const env = { UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/v1` };
  await using service = await startService(env, folder.path, { like });
  const port = Number(new URL(service.url).port);
  const load = { ...chatLoad({ key: service.key, port }, { users: 500 }), connections: 16 };
  await runLoad({ ...load, seconds: warmUpSeconds });
  const alone = await runLoad({ ...load, seconds: measuredSeconds });
  // The slowest of the stretches in which the removal may run.
  await waits.pause(Math.max(0, endsAt - Date.now()) / 2);
  let slowest = alone;
  while (Date.now() < endsAt + begunAfterMs + 10_000) {
    const beside = await runLoad({ ...load, seconds: measuredSeconds });
    if (beside.p99 > slowest.p99) slowest = beside;
  }
  const figures = [
    { name: "chats, 16 callers: p99", value: alone.p99, unit: "ms" },
    { name: "the same beside the removal of 300,000 rows", value: slowest.p99, unit: "ms" },
    { name: "chats, 16 callers", value: alone.perSecond, unit: "/s" },
    { name: "the same beside the removal of 300,000 rows", value: slowest.perSecond, unit: "/s" },
  ];
  figures.forEach(show);
  return figures;
}

/** Measures how fast what has ended is removed, and what that costs requests. */
export async function benchRemoval(long: boolean): Promise<Figure[]> {
  const count = long ? 100_000 : 10_000;
  using folder = makeFolder();
  const kv = denoKv(await Deno.openKv(`${folder.path}/removal.kv`));
  const ofFile = await measureKinds("file", [kv], count);
  kv.close();
  return [...ofFile, ...await measurePostgres(count), ...await measureBeside()];
}
