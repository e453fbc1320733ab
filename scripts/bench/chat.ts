import { benchAgainst } from "./against.ts";
import { type Figure, median, show } from "./figures.ts";
import { type Load, type Loaded, runLoad, startProcess } from "./processes.ts";
import { chatLoad, startPaid, warmUpSeconds } from "./paid.ts";
import { makeFolder, type Service } from "./service.ts";

// Many short turns: other load on the machine then slows both sides, not one of them.
const turns = 7;

/** The results of a load, as the median of its turns. */
interface Measured extends Loaded {
  /** Throughput relative to the first load, as the median of the turns. */
  ofFirst: number;
}

/** Measures loads in turns, several times; returns the median of each. */
export async function inTurn(loads: Load[]): Promise<Measured[]> {
  const measured: Loaded[][] = loads.map(() => []);
  for (const load of loads) await runLoad({ ...load, seconds: warmUpSeconds });
  for (let turn = 0; turn < turns; turn++) {
    for (const [index, load] of loads.entries()) measured[index]?.push(await runLoad(load));
  }
  return measured.map((each) => ({
    ofFirst: median(
      each.map(({ perSecond }, turn) => perSecond / (measured[0]?.[turn]?.perSecond ?? NaN)),
    ),
    perSecond: median(each.map(({ perSecond }) => perSecond)),
    p50: median(each.map(({ p50 }) => p50)),
    p99: median(each.map(({ p99 }) => p99)),
    failed: 0,
    faults: 0,
    requests: each.reduce((sum, { requests }) => sum + requests, 0),
  }));
}

/** Measures chats against those of other checkouts, or, where none is given, against a proxy. */
export function benchChat(_long: boolean, checkouts: readonly string[]): Promise<Figure[]> {
  return checkouts.length > 0 ? benchAgainst(checkouts) : benchAgainstBare();
}

/** Measures metered chats against a proxy that only parses the same JSON; then against peers. */
async function benchAgainstBare(): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts");
  await using bare = await startProcess("bare.ts", upstream.port);
  using folder = makeFolder();
  await using service = await startPaid(upstream.port, folder.path);
  const [plain, many, hot] = await inTurn([
    chatLoad(bare, {}),
    chatLoad(service, { users: 500 }),
    chatLoad(service, { users: 1 }),
  ]);
  if (!plain || !many || !hot) throw new Error("three were measured");
  const ofBare = many.ofFirst;
  const hotOfBare = hot.ofFirst;
  const figures: Figure[] = [
    { name: "bare proxy, 64 connections", value: plain.perSecond, unit: "/s" },
    { name: "metered chats, 500 users", value: many.perSecond, unit: "/s" },
    { name: "their ratio", value: ofBare, unit: "", bar: "at least 0.5", ok: ofBare >= 0.5 },
    { name: "metered chats, one user", value: hot.perSecond, unit: "/s" },
    { name: "their ratio", value: hotOfBare, unit: "", bar: "at least 0.6", ok: hotOfBare >= 0.6 },
  ];
  figures.forEach(show);
  return [...figures, ...(await fileSize(service, folder.path, many.requests + hot.requests))];
}

/** Returns the size of the database for each chat. */
async function fileSize(
  service: Service,
  folder: string,
  chats: number,
): Promise<Figure[]> {
  await service.json("/v1/user/balance?user=user-1");
  const bytes = ["bench.kv", "bench.kv-wal"]
    .map((name) => Deno.statSync(`${folder}/${name}`).size)
    .reduce((sum, size) => sum + size, 0);
  const figure = { name: "database file for each chat", value: bytes / chats, unit: "bytes" };
  show(figure);
  return [figure];
}
