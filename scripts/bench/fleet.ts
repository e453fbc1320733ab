import { findPostgres, startPostgres } from "../../tests/support/postgres.ts";
import { chatLoad, startPaid } from "./paid.ts";
import { type Figure, median, show } from "./figures.ts";
import { type Load, type Loaded, runLoad, startProcess } from "./processes.ts";
import { makeFolder, type Service, startService } from "./service.ts";

// Processes that share a PostgreSQL database. It is 40 ms away, as in another region, and callers
// are few, so that waiting decides and not the cores of this machine: four processes with their
// load and database take about half of two cores. On more cores the same ratios hold nearby.
const roundTripMs = 40;
/** For each process: else more processes would mean more callers for each user. */
const users = 300;
/** One account for each user of runs with 1, 2 and 4 processes, and some besides. */
const accounts = 7 * users + 10;
const connectionsEach = 8;
/** The callers of one account, over all processes. */
const hotConnections = 240;
const turns = 5;
const turnSeconds = 4;
const warmUpSeconds = 10;

/** Services on one database. */
interface Fleet extends AsyncDisposable {
  members: (Service & { port: number })[];
}

async function startFleet(
  count: number,
  { url, upstreamPort }: { url: string; upstreamPort: number },
): Promise<Fleet> {
  const folder = makeFolder();
  const env = { KV_PATH: url, LOG_LEVEL: "info" };
  const upstream = { UPSTREAM_URL: `http://127.0.0.1:${upstreamPort}/v1` };
  const first = await startPaid(upstreamPort, folder.path, accounts, env);
  const others = await Promise.all(
    Array.from(
      { length: count - 1 },
      () => startService({ ...env, ...upstream }, folder.path, { like: first }),
    ),
  );
  const members = [first, ...others.map((each) => withPort(each))];
  return {
    members,
    async [Symbol.asyncDispose]() {
      await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
      folder[Symbol.dispose]();
    },
  };
}

function withPort(service: Service): Service & { port: number } {
  return Object.assign(service, { port: Number(new URL(service.url).port) });
}

/** How the users of a load come to the processes. */
type Routing = "sticky" | "any";

/** Users of their own for each number of processes: else the arms would meet on their accounts. */
function loadsOf({ members }: Fleet, count: number, routing: Routing): Load[] {
  const base = (count - 1) * users;
  return members.slice(0, count).map((member, at) => ({
    ...chatLoad(member, { connections: connectionsEach, seconds: turnSeconds }),
    ...(routing === "sticky"
      ? { users, every: count, base: base + at }
      : { users: count * users, base }),
    drawn: true,
    counts: true,
  }));
}

/** The callers of one account, spread over `count` processes. */
function hotLoadsOf({ members }: Fleet, count: number): Load[] {
  const connections = hotConnections / count;
  return members.slice(0, count).map((member) => ({
    ...chatLoad(member, { connections, seconds: turnSeconds }),
    users: 1,
    base: 7 * users + count,
    counts: true,
  }));
}

/** Runs loads at once; their sum, and the latencies of the slowest. */
async function together(loads: Load[]): Promise<Loaded> {
  const each = await Promise.all(loads.map(runLoad));
  const sum = (of: (loaded: Loaded) => number) => each.reduce((total, one) => total + of(one), 0);
  return {
    perSecond: sum(({ perSecond }) => perSecond),
    p50: Math.max(...each.map(({ p50 }) => p50)),
    p99: Math.max(...each.map(({ p99 }) => p99)),
    failed: sum(({ failed }) => failed),
    faults: sum(({ faults }) => faults),
    requests: sum(({ requests }) => requests),
  };
}

/** Measures loads of several numbers of processes in turn; returns the medians. */
async function compare(arms: readonly Load[][]): Promise<Loaded[]> {
  const measured: Loaded[][] = arms.map(() => []);
  for (const loads of arms) {
    await together(loads.map((load) => ({ ...load, seconds: warmUpSeconds })));
  }
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, loads] of arms.entries()) measured[at]?.push(await together(loads));
  }
  return measured.map((each) => ({
    perSecond: median(each.map(({ perSecond }) => perSecond)),
    p50: median(each.map(({ p50 }) => p50)),
    p99: median(each.map(({ p99 }) => p99)),
    failed: each.reduce((total, { failed }) => total + failed, 0),
    faults: each.reduce((total, { faults }) => total + faults, 0),
    requests: each.reduce((total, { requests }) => total + requests, 0),
  }));
}

const bars: Record<Routing, [two: number, four: number]> = { sticky: [1.9, 3.8], any: [1.5, 3] };

async function scaling(fleet: Fleet): Promise<Figure[]> {
  const figures: Figure[] = [];
  const add = (figure: Figure) => {
    figures.push(figure);
    show(figure);
  };
  for (const routing of ["sticky", "any"] as const) {
    const arms = [1, 2, 4].map((count) => loadsOf(fleet, count, routing));
    const [one, two, four] = await compare(arms);
    if (!one || !two || !four) throw new Error("three were measured");
    for (
      const [count, loaded, bar] of [[2, two, bars[routing][0]], [
        4,
        four,
        bars[routing][1],
      ]] as const
    ) {
      const value = loaded.perSecond / one.perSecond;
      const name = `${count} processes of one, users ${routing}`;
      add({ name, value, unit: "", bar: `at least ${bar}`, ok: value >= bar });
      add({ name: `their p99, users ${routing}`, value: loaded.p99, unit: "ms" });
    }
    add({
      name: `one process, p50 and p99: ${Math.round(one.p50)} and`,
      value: one.p99,
      unit: "ms",
    });
    const failed = [one, two, four].reduce((sum, loaded) => sum + loaded.failed, 0);
    const asked = [one, two, four].reduce((sum, loaded) => sum + loaded.requests, 0);
    const share = failed / asked;
    const name = `refused, users ${routing}`;
    add({ name, value: share, unit: "", bar: "at most 0.01", ok: share <= 0.01 });
  }
  return figures;
}

/** Many callers of one account: what several processes do of what one does. */
async function hotAccount(fleet: Fleet): Promise<Figure[]> {
  const counts = [1, 2, 3];
  const [one, ...several] = await compare(counts.map((count) => hotLoadsOf(fleet, count)));
  if (!one) throw new Error("one was measured");
  const figures = several.flatMap((loaded, at): Figure[] => {
    const rate = loaded.perSecond / one.perSecond;
    const slower = loaded.p99 / one.p99;
    const name = `one account, ${counts[at + 1]} processes`;
    return [
      { name: `${name} of one`, value: rate, unit: "", bar: "at least 0.8", ok: rate >= 0.8 },
      { name: `${name}, p99 of one's`, value: slower, unit: "", bar: "at most 2", ok: slower <= 2 },
      {
        name: `${name}, answered with 5xx`,
        value: loaded.faults,
        unit: "",
        bar: "0",
        ok: loaded.faults === 0,
      },
    ];
  });
  figures.push({ name: "one account, one process", value: one.perSecond, unit: "/s" });
  figures.push({ name: "its p99", value: one.p99, unit: "ms" });
  figures.forEach(show);
  return figures;
}

/** One process on a local PostgreSQL beside one on a file, in turn. */
async function local(url: string, upstreamPort: number): Promise<Figure[]> {
  using fileFolder = makeFolder();
  await using file = await startPaid(upstreamPort, fileFolder.path, users);
  await using fleet = await startFleet(1, { url, upstreamPort });
  const [server] = fleet.members;
  if (!server) throw new Error("one was started");
  const loads = [file, server].map((service) => chatLoad(service, { users, seconds: 3 }));
  for (const load of loads) await runLoad({ ...load, seconds: 15 });
  const ratios: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const [ofFile, ofServer] = [await runLoad(loads[0] as Load), await runLoad(loads[1] as Load)];
    ratios.push(ofServer.perSecond / ofFile.perSecond);
  }
  const value = median(ratios);
  const name = "one process on a PostgreSQL nearby, of one on a file";
  const figure = { name, value, unit: "", bar: "at least 0.8", ok: value >= 0.8 };
  show(figure);
  return [figure];
}

/** Measures 1, 2 and 4 processes on one database, and one on a database nearby. */
export async function benchFleet(): Promise<Figure[]> {
  if (findPostgres() === null) {
    console.log("skipped: PostgreSQL is not installed (POSTGRES_BIN names its programs)");
    return [];
  }
  await using upstream = await startProcess("upstream.ts");
  await using server = await startPostgres({ settings: ["shared_buffers=256MB"] });
  await using proxy = await startProcess("delay_proxy.ts", server.port, roundTripMs);
  const far = (await server.newSchema()).replace(`:${server.port}/`, `:${proxy.port}/`);
  const figures = await local(await server.newSchema(), upstream.port);
  await using fleet = await startFleet(4, { url: far, upstreamPort: upstream.port });
  return [...figures, ...await hotAccount(fleet), ...await scaling(fleet)];
}
