import { fromDecimal, toAmount } from "../../src/base/money.ts";
import { createIds } from "../../src/base/ids.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { type RequestRecord, storeRequest } from "../../src/requests/record.ts";
import { toBytes } from "../../src/base/json.ts";
import { requestsKey } from "../../src/store/keys.ts";
import { emptyWrite, type Increment } from "../../src/store/kv.ts";
import { countCallHourly, countEntryHourly } from "../../src/summaries/hourly_counters.ts";
import { type Figure, percentile, show } from "./figures.ts";
import { filled } from "./growth.ts";
import { adminKey, makeFolder, type Service } from "./service.ts";
import { startProcess } from "./processes.ts";

const hourMs = 60 * 60 * 1000;
const models = Array.from({ length: 10 }, (_, at) => `model-${at}`);
const requestsPerRow = 64;
const rowsPerWrite = 20;
const rounds = 40;
const mostMs = 50;

/** Writes a month of sums by the hour and by model. */
async function fillSums(path: string, projectId: string): Promise<void> {
  const kv = denoKv(await Deno.openKv(path));
  const now = Date.now();
  for (let hour = 0; hour < 30 * 24; hour++) {
    const at = now - hour * hourMs;
    const additions: Increment[] = models.flatMap((model) => {
      const usage = { model, uncachedInput: 1000, output: 200, upstreamCost: "0.001" };
      const charged = { kind: "chat", amount: fromDecimal("0.002"), shortfall: toAmount(0n) };
      const times = { latencyMs: 900, firstTokenMs: 300, outcome: "completed" as const };
      return [
        countEntryHourly({ projectId, isUse: true, ...charged, usage, at }),
        countCallHourly({ projectId, model, ...times, at }),
      ];
    });
    await kv.atomic({ ...emptyWrite(), additions });
  }
  kv.close();
}

/** Writes the log of so many requests, over the last month. */
async function fillRequests(path: string, projectId: string, count: number): Promise<void> {
  const kv = denoKv(await Deno.openKv(path));
  const rows = Math.ceil(count / requestsPerRow);
  const stepMs = (30 * 24 * hourMs) / count;
  let at = Date.now() - 30 * 24 * hourMs;
  const id = createIds(() => Math.floor(at), Math.random);
  for (let made = 0; made < rows; made += rowsPerWrite) {
    const write = emptyWrite();
    for (let n = made; n < Math.min(rows, made + rowsPerWrite); n++) {
      const records = Array.from({ length: requestsPerRow }, (_, record) => {
        at += stepMs;
        return storeRequest(recordOf(id("req"), n * requestsPerRow + record, Math.floor(at)));
      });
      write.sets.push({ key: requestsKey(projectId, id("rql")), value: toBytes(records) });
    }
    await kv.atomic(write);
  }
  kv.close();
}

function recordOf(id: string, n: number, at: number): RequestRecord {
  const failed = n % 50 === 0;
  return {
    id,
    requestId: id,
    at,
    outcome: failed ? "failed" : "completed",
    status: failed ? 502 : 200,
    reason: failed ? "upstream_error" : null,
    endpoint: "chat",
    stream: true,
    user: `user-${n % 100_000}`,
    model: models[n % models.length] ?? "model-0",
    key: "key_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    latencyMs: 900,
    firstTokenMs: 300,
    inputTokens: 1000,
    cachedTokens: 0,
    outputTokens: 200,
    cost: "0.002",
    upstreamCost: "0.001",
    upstream: null,
    attempts: 1,
    activityId: null,
    count: 1,
  };
}

/** Signs in to the console; returns the cookie. */
async function signIn({ url }: Service): Promise<string> {
  const response = await fetch(`${url}/console/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: { origin: "http://127.0.0.1:9", "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ key: adminKey }).toString(),
  });
  await response.body?.cancel();
  const [cookie] = (response.headers.get("set-cookie") ?? "").split(";");
  if (!cookie) throw new Error(`no session: ${response.status}`);
  return cookie;
}

/** The page of the last request. */
async function requestPath(
  { url }: Service,
  { console, cookie }: { console: string; cookie: string },
): Promise<string> {
  const list = await fetch(`${url}${console}/requests`, { headers: { cookie } });
  const [, place] = /one\?place=([\w.]+)/.exec(await list.text()) ?? [];
  return `${console}/requests/one?place=${place}`;
}

const projectPages = [
  "",
  "?days=30",
  "/users",
  "/users?order=low",
  "/users/one?user=user-77",
  "/activity",
  "/activity?kind=charge",
  "/requests",
  "/requests?outcome=failed",
  "/requests?user=user-77",
  "/requests?model=none",
  "/requests?outcome=completed&from=2020-01-01",
  "/live",
  "/pricing",
  "/webhooks",
  "/deliveries",
  "/keys",
  "/upstreams",
  "/limits",
  "/messages",
  "/alerts",
  "/settings",
  "/audit",
];

/** Measures the pages of a project with many users, entries and requests. */
export async function benchPages(long: boolean): Promise<Figure[]> {
  const users = long ? 100_000 : 10_000;
  await using upstream = await startProcess("upstream.ts");
  const env = { UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/v1`, LOG_LEVEL: "warn" };
  using folder = makeFolder();
  // The sums and the log are written before the service that is measured opens the file.
  const { service } = await filled(folder.path, env, users, async (path, projectId) => {
    await fillSums(path, projectId);
    await fillRequests(path, projectId, users * 10);
  });
  await using _service = service;
  const cookie = await signIn(service);
  const { url: topUp } = await service.json("/v1/user/balance/topup?user=user-77");
  const topUpPath = String(topUp).replace("http://127.0.0.1:9", "");
  const console = `/console/projects/${service.projectId}`;
  const request = await requestPath(service, { console, cookie });
  const own = [...projectPages.map((page) => console + page), request];
  const paths = ["/console/projects", "/console/catalogue", ...own, topUpPath];
  const figures: Figure[] = [];
  const all = [...paths, "/docs", "/docs/guides/prices"];
  const timeOf = async (path: string): Promise<number> => {
    const startedAt = performance.now();
    const response = await fetch(service.url + path, { headers: { cookie }, redirect: "manual" });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    return performance.now() - startedAt;
  };
  // The first ones run before the code is compiled, and beside the sweep of a new process.
  for (const path of all) for (let round = 0; round < 3; round++) await timeOf(path);
  // In turn: the sweeps of the process, which take seconds, meet every page alike.
  const timesOf = new Map(all.map((path) => [path, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const [path, times] of timesOf) times.push(await timeOf(path));
  }
  for (const [path, times] of timesOf) {
    const value = percentile(times, 0.9);
    const name = `${
      path.replace(console, "").split("place=")[0] || "overview"
    }, of ${users} users, p90`;
    figures.push({ name, value, unit: "ms", bar: `under ${mostMs}`, ok: value < mostMs });
  }
  figures.forEach(show);
  return figures;
}
