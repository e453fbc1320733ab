import { isIP } from "node:net";
import process from "node:process";
import { UnorderedBag } from "../base/unordered_bag.ts";
import { withDeadline } from "../base/deadline.ts";
import { createIds } from "../base/ids.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../base/clock.ts";
import type { Deps, Log, OutsideDeps, ProcessFacts, RequestUpstream } from "../deps.ts";
import { createHttpClient } from "../http/client.ts";
import { readProxies } from "../http/proxy.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { createTracing, type Tracing } from "../metrics/tracing.ts";
import { createConnect } from "./connect.ts";
import { createJsonLines, createLog } from "./log.ts";
import { createTextLines } from "./log_text.ts";
import { openMailer } from "./mailer.ts";
import { createWebhookSender } from "./webhook_sender.ts";
import { createLookup } from "./lookup.ts";
import { createResolve } from "./resolve.ts";
import type { Store } from "./stores.ts";
import { createCommitter } from "../store/commit.ts";
import { batchReads } from "../store/read_batcher.ts";
import { type Bound, guardKv } from "../store/kv.ts";

/** Creates deps with the real clock, random source, network and store. */
export async function createRealDeps(config: Config, store: Store): Promise<OutsideDeps> {
  const id = createIds(Date.now, randomFraction);
  const kv = batchReads(guardKv(store.kv, bound), realClock);
  const log = openLog(config);
  trustDenoAuthorities();
  const meter = createMetrics();
  const tracing = createTracing();
  const resolve = createResolve(createLookup(), realClock);
  return {
    config,
    kv,
    committer: createCommitter({
      kv,
      newBatchId: () => id("batch"),
      clock: realClock,
      meter,
    }),
    clock: realClock,
    id,
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    fetch: fetchOnceResolved(resolve),
    requestUpstream: openHttpClient(tracing, resolve),
    resolve,
    sendWebhook: openWebhookSender(config, tracing),
    sendMail: openMailer(config, resolve),
    alarm: store.openAlarm(realClock, log),
    takeSnapshot: store.takeSnapshot,
    log,
    showCall: isLogForPeople(config) ? showCallIn(log) : null,
    guides: await readGuides(log),
    fonts: await readFonts(log),
    metrics: meter,
    tracing,
    process: processFacts(),
  };
}

/** Reads the files of `guides/`, beside this program. The service works without them. */
export async function readGuides(log: Log): Promise<Deps["guides"]> {
  const folder = new URL("../../guides/", import.meta.url);
  const guides = new Map<string, string>();
  try {
    for await (const { name } of Deno.readDir(folder)) {
      const markdown = await Deno.readTextFile(new URL(name, folder));
      guides.set(name.replace(/\.md$/, ""), markdown);
    }
  } catch (error) {
    log("warn", "no_guides", { cause: String(error) });
  }
  return guides;
}

/** Reads the fonts of the pages, which look plainer without them. */
export async function readFonts(log: Log): Promise<Deps["fonts"]> {
  const folder = new URL("../pages/fonts/", import.meta.url);
  const fonts = new Map<string, Uint8Array<ArrayBuffer>>();
  try {
    for await (const { name } of Deno.readDir(folder)) {
      if (name.endsWith(".woff2")) fonts.set(name, await Deno.readFile(new URL(name, folder)));
    }
  } catch (error) {
    log("warn", "no_fonts", { cause: String(error) });
  }
  return fonts;
}

/** The diagnosis of a certificate, by Node's TLS, trusts what Deno is told to trust. */
function trustDenoAuthorities(): void {
  const path = Deno.env.get("DENO_CERT");
  if (path && !Deno.env.get("NODE_EXTRA_CA_CERTS")) Deno.env.set("NODE_EXTRA_CA_CERTS", path);
}

/**
 * Creates the client for upstreams, with the proxies that the environment names, and its own spans.
 */
function openHttpClient(tracing: Tracing | null, resolve: Deps["resolve"]): RequestUpstream {
  const findProxy = readProxies((name) => Deno.env.get(name)) ?? undefined;
  const connect = createConnect([], { resolve, clock: realClock });
  const client = createHttpClient(connect, realClock, findProxy);
  return tracing ? (request) => tracing.send(request, client) : client;
}

/**
 * Creates the sender of webhooks, with its own spans. Throws an Error where it should use a proxy
 * and there is none.
 */
function openWebhookSender(
  { webhooks }: Config,
  tracing: Tracing | null,
): Deps["sendWebhook"] {
  const findProxy = webhooks.useProxy ? readProxies((name) => Deno.env.get(name)) : () => null;
  if (!findProxy) throw new Error("WEBHOOK_USE_PROXY needs HTTPS_PROXY or ALL_PROXY");
  const send = createWebhookSender({ clock: realClock, findProxy });
  return tracing ? (request) => tracing.send({ ...request, method: "POST" }, send) : send;
}

function processFacts(): ProcessFacts {
  const { deno, v8 } = Deno.version;
  return {
    startedAt: Date.now() - performance.now(),
    runtime: { deno, v8 },
    memory: () => Deno.memoryUsage(),
    cpuSeconds() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  };
}

/**
 * `fetch`, once the name has been resolved: it looks the name up again, on a thread that files and
 * encryption need too, which must not hang.
 */
function fetchOnceResolved(resolve: Deps["resolve"]): Deps["fetch"] {
  const findProxy = readProxies((name) => Deno.env.get(name));
  return async (url, init) => {
    const { hostname, protocol, port } = new URL(url);
    const secure = protocol === "https:";
    const server = { hostname, port: Number(port) || (secure ? 443 : 80), secure };
    // A proxy looks the name up itself.
    if (!findProxy?.(server) && isIP(hostname) === 0) await resolve(hostname, "operator");
    return await fetch(url, init);
  };
}

const realClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
    }),
  after(ms, work) {
    if (ms >= deadlineFromMs) return startDeadline(ms, work);
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

// Every call of an upstream, a store or a subscriber has a deadline, and so has every chunk of a
// stream; nearly all are canceled. A timer costs 10 µs each, a place in a bag nothing.
const deadlineFromMs = 1_000;
const deadlineTickMs = 50;
const deadlines = new UnorderedBag<{ at: number; work: () => void }>();
let ticking: ReturnType<typeof setInterval> | null = null;

/** Calls `work` after this time, or up to a tick later. */
function startDeadline(ms: number, work: () => void): () => void {
  const takeBack = deadlines.add({
    at: performance.now() + ms,
    work() {
      takeBack();
      work();
    },
  });
  ticking ??= setInterval(tick, deadlineTickMs);
  return takeBack;
}

function tick(): void {
  const now = performance.now();
  for (const { at, work } of deadlines) if (at <= now) work();
  if (deadlines.size > 0 || ticking === null) return;
  clearInterval(ticking);
  ticking = null;
}

const bound: Bound = (work, ms, late) => withDeadline(realClock, work, { ms, late });

// Drawing many random numbers at once costs one crypto call for all of them.
const pool = new Uint32Array(1024);
let poolUsed = pool.length;

/** Returns a random number in [0, 1) from the system's cryptographic source. */
function randomFraction(): number {
  if (poolUsed === pool.length) {
    crypto.getRandomValues(pool);
    poolUsed = 0;
  }
  return (pool[poolUsed++] ?? 0) / 2 ** 32;
}

/** Whether the log is written for people: as set, and otherwise on a terminal. */
export function isLogForPeople({ logFormat }: Pick<Config, "logFormat">): boolean {
  return logFormat === null ? Deno.stdout.isTerminal() : logFormat === "text";
}

function showCallIn(log: Log): Deps["showCall"] {
  return (call) => log(call.status >= 500 ? "error" : "info", "call", { ...call });
}

/** Opens the log on standard output; its own problems are reported on standard error. */
function openLog(config: Config): Log {
  const color = Deno.stdout.isTerminal() && !Deno.env.get("NO_COLOR");
  const format = isLogForPeople(config) ? createTextLines({ color }) : createJsonLines();
  const { log, flush } = createLog(config.logLevel, {
    clock: realClock,
    write: (bytes) => Deno.stdout.writeSync(bytes),
    complain(text) {
      try {
        Deno.stderr.writeSync(new TextEncoder().encode(text));
      } catch {
        // No one is left to report it to.
      }
    },
  }, format);
  globalThis.addEventListener("unload", flush);
  return log;
}
