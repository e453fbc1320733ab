import assert from "node:assert/strict";
import { type App, createApp } from "../../src/app.ts";
import { createIds } from "../../src/base/ids.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Deps, OutsideDeps } from "../../src/deps.ts";
import { createHttpClient } from "../../src/http/client.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createCommitter } from "../../src/store/commit.ts";
import { batchReads } from "../../src/store/read_batcher.ts";
import { readFonts, readGuides } from "../../src/platform/deps.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { openTestStore } from "./test_store.ts";
import { guardKv, type Kv } from "../../src/store/kv.ts";
import { checkedAnswer } from "./api_document.ts";
import type { Body } from "./body.ts";
import { connectToScript } from "./scripted_server.ts";
import { beginStream } from "./stream_start.ts";
import { createHandClock, type HandClock } from "./clock.ts";
import { createStripeDouble, type StripeDouble } from "./stripe.ts";
import { mulberry32 } from "./random.ts";
import { createSubscriberScript, type SubscriberScript } from "./subscriber.ts";
import { createUpstreamScript, type UpstreamScript } from "./upstream.ts";

/** The admin key of every world. */
export const adminKey = "test-admin-key-of-at-least-32-characters";

/** One service for a test: a real in-memory store, a manual clock, a scripted upstream. */
export interface World extends Disposable {
  app: App;
  deps: OutsideDeps;
  clock: HandClock;
  upstream: UpstreamScript;
  subscriber: SubscriberScript;
  stripe: StripeDouble;
  /** When the alarm was scheduled; `ring` fires it. */
  alarm: { asked: number[]; ring(): void };
  /** Everything that was logged, as fields. */
  logged: Record<string, unknown>[];
  /** Secrets that responses have shown: none may be found in the log. */
  seenSecrets: Set<string>;
  /** The project that `call` uses, with the settings of `makeProject`. */
  projectId: string;
  apiKey: string;
  /** The key that opens the console. */
  ownerKey: string;
  /** Calls the service with the project's key; a body is sent as JSON. */
  call(path: string, options?: CallOptions): Promise<Response>;
  /** Calls the service as `call` does, and parses the JSON of the response. */
  json(
    path: string,
    options?: CallOptions,
  ): Promise<{ status: number; body: Body; response: Response }>;
  makeProject(
    settings?: Record<string, unknown>,
  ): Promise<{ projectId: string; apiKey: string; ownerKey: string }>;
  deposit(user: string, amount: string): Promise<void>;
  balance(user: string): Promise<{ balance: string; held: string; available: string }>;
  activities(user: string): Promise<Body[]>;
  /** Waits until a condition holds, moving the clock by `stepMs` each time, for a minute. */
  until(condition: () => boolean | Promise<boolean>, stepMs?: number): Promise<void>;
}

export type { Body };

export interface CallOptions {
  method?: string;
  body?: unknown;
  /** Leaves the clock alone where a stream has not begun. */
  keepClock?: boolean;
  /** Sent unchanged, instead of `body`. */
  raw?: BodyInit;
  key?: string | null;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

interface WorldOptions {
  seed?: number;
  env?: Record<string, string>;
  dev?: boolean;
  project?: Record<string, unknown>;
  /** Wraps the store, to make it fail. */
  wrapKv?: (kv: Kv) => Kv;
  /** How the database is copied; being in memory, it cannot be by default. */
  showCall?: Deps["showCall"];
  /** How e-mail is sent; not at all by default. */
  sendMail?: Deps["sendMail"];
  takeSnapshot?: Deps["takeSnapshot"];
  /** How deliveries are sent; to the scripted subscriber by default. */
  sendWebhook?: Deps["sendWebhook"];
  /** Tells the service that other processes use the store. */
  isShared?: boolean;
  /** By how many ms its clock is ahead of the one that the test moves. */
  aheadMs?: number;
  /**
   * Another world's store, as a second process on it. Where that is not shared, it is the next
   * process: the other one is taken for dead.
   */
  shareWith?: World;
  /** A database that exists already; else a new one in memory. The world closes it. */
  database?: Deno.Kv;
}

/** A million tokens in for 1, out for 2: so one token is 0.000001 and 0.000002. */
export const testPricing = {
  models: { "test-model": { input: "1", output: "2", maxOutputTokens: 1000, reasoning: false } },
};

/** The HTTP client paces its reads by it: a stopped clock would stop them. */
const realClock = {
  elapsed: () => performance.now(),
  after(ms: number, work: () => void) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

const guides = await readGuides(() => {});
const fonts = await readFonts(() => {});
const stores = new WeakMap<World, Kv>();

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const { seed = 1, env = {}, dev = false, wrapKv, shareWith } = options;
  const random = mulberry32(seed + (shareWith ? 7919 : 0));
  const clock = shareWith?.clock ?? createHandClock();
  const { aheadMs = 0 } = options;
  const ownClock = aheadMs === 0 ? clock : { ...clock, now: () => clock.now() + aheadMs };
  const upstream = createUpstreamScript(clock);
  const subscriber = shareWith?.subscriber ?? createSubscriberScript();
  const stripe = createStripeDouble();
  const alarm = { asked: [] as number[], ring() {} };
  const logged: Record<string, unknown>[] = [];
  const config = readConfig(dev ? env : { ...productionEnv, ...env }, { dev });
  const store = options.database
    ? denoKv(options.database)
    : (shareWith && stores.get(shareWith)) ?? await openTestStore(options.isShared);
  const kv = batchReads(guardKv(wrapKv ? wrapKv(plain(store)) : store, (work) => work), clock);
  const id = createIds(ownClock.now, random);
  const meter = createMetrics();
  const deps: OutsideDeps = {
    config,
    kv,
    committer: createCommitter({ kv, newBatchId: () => id("batch"), clock, meter }),
    clock: ownClock,
    id,
    randomBytes: (length) => Uint8Array.from({ length }, () => Math.floor(random() * 256)),
    resolve: subscriber.resolve,
    sendWebhook: options.sendWebhook ?? subscriber.post,
    sendMail: options.sendMail ?? null,
    alarm: {
      schedule: (at) => void alarm.asked.push(at),
      onWake: (wake) => void (alarm.ring = wake),
    },
    showCall: options.showCall ?? null,
    takeSnapshot: options.takeSnapshot ?? null,
    fetch: (url, init) => stripe.answer(new Request(url, init)),
    requestUpstream: createHttpClient(connectToScript({ respond: upstream.answer }), realClock),
    log: (level, event, fields) => logged.push({ level, event, ...fields }),
    guides,
    fonts,
    metrics: meter,
    tracing: null,
    process: {
      startedAt: ownClock.now(),
      runtime: { deno: "2.9.6", v8: "14.0" },
      memory: () => ({ rss: 100e6, heapUsed: 50e6 }),
      cpuSeconds: () => 1,
    },
  };
  const service = await createApp(deps);
  await service.sealingMark.note();
  service.dispatcher.listen();
  const undocumented: string[] = [];
  const app: App = {
    ...service,
    // Every response of every test must be in the API document.
    fetch: async (request, connection) =>
      await checkedAnswer(request, await service.fetch(request, connection), (fault) => {
        undocumented.push(fault);
      }),
  };

  const world: World = {
    app,
    deps,
    clock,
    upstream,
    subscriber,
    stripe,
    alarm,
    logged,
    seenSecrets: new Set(),
    projectId: "",
    apiKey: "",
    ownerKey: "",
    async call(path, options = {}) {
      const { method, body, raw, key = world.apiKey, headers, signal, keepClock } = options;
      const content = raw ?? (body === undefined ? null : JSON.stringify(body));
      const request = new Request(`http://localhost${path}`, {
        method: method ?? (content === null ? "GET" : "POST"),
        body: content,
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(content === null ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(signal ? { signal } : {}),
      });
      const isStream = typeof body === "object" && body !== null && "stream" in body && body.stream;
      if (!isStream || keepClock) return await app.fetch(request);
      const before = world.upstream.calls.length;
      return await beginStream(Promise.resolve(app.fetch(request)), {
        hasUpstream: () => world.upstream.calls.length > before,
        advance: (ms) => world.clock.advance(ms),
      });
    },
    async json(path, options) {
      const response = await world.call(path, options);
      const body = await response.json();
      const token = /\/(?:topup|authorize)\/([\w-]+\.[\w-]+)/.exec(body?.url ?? "")?.[1];
      for (const secret of [body?.apiKey, body?.ownerKey, body?.subscription?.secret, token]) {
        if (typeof secret === "string") world.seenSecrets.add(secret);
      }
      return { status: response.status, body, response };
    },
    async makeProject(settings = {}) {
      const body = { name: "Test", pricing: testPricing, ...settings };
      const { status, body: made } = await world.json("/v1/admin/projects", {
        key: adminKey,
        body,
      });
      assert.equal(status, 201, JSON.stringify(made));
      const { project, apiKey, ownerKey } = made;
      return { projectId: project.id, apiKey, ownerKey };
    },
    async deposit(user, amount) {
      const { status, body } = await world.json("/v1/user/balance/deposit", {
        body: { user, amount },
      });
      assert.equal(status, 200, JSON.stringify(body));
    },
    async balance(user) {
      const { body } = await world.json(`/v1/user/balance?user=${encodeURIComponent(user)}`);
      const { balance, held, available } = body;
      return { balance, held, available };
    },
    async activities(user) {
      const path = `/v1/user/activities?limit=100&user=${encodeURIComponent(user)}`;
      return (await world.json(path)).body.activities;
    },
    async until(condition, stepMs = 0) {
      const startedAt = performance.now();
      while (!await condition()) {
        assert.ok(performance.now() - startedAt < 60_000, `not within a minute: ${condition}`);
        if (stepMs > 0) await clock.advance(stepMs);
        else await new Promise((resolve) => setTimeout(resolve, 1));
      }
    },
    [Symbol.dispose]() {
      if (!shareWith) store.close();
      assert.deepEqual([...undocumented, ...subscriber.undocumented], []);
      assertNothingSecret(world, { ...productionEnv, ...env });
    },
  };
  stores.set(world, store);
  if (!dev && !shareWith) Object.assign(world, await world.makeProject(options.project));
  if (shareWith) {
    const { projectId, apiKey, ownerKey } = shareWith;
    Object.assign(world, { projectId, apiKey, ownerKey });
  }
  return world;
}

/** The store with `atomic` as its only way to write, which a test can replace. */
function plain({ atomicOrFailed: _, ...kv }: Kv): Kv {
  return kv;
}

/** Asserts that nothing that was logged shows a secret of this world. */
function assertNothingSecret(world: World, env: Record<string, string>): void {
  const names = ["ADMIN_KEY", "SECRETS_KEY", "UPSTREAM_API_KEY", "STRIPE_SECRET_KEY"];
  const secrets = [world.apiKey, env.STRIPE_WEBHOOK_SECRET, ...names.map((name) => env[name])];
  const text = JSON.stringify(world.logged) + Deno.inspect(world.logged, { depth: 20 });
  for (const secret of [...secrets, ...world.seenSecrets]) {
    if (secret) assert.ok(!text.includes(secret), "a secret was logged");
  }
}

const productionEnv = {
  BASE_URL: "https://farebox.test",
  ADMIN_KEY: adminKey,
  SECRETS_KEY: btoa("0123456789abcdef0123456789abcdef"),
  UPSTREAM_URL: "https://upstream.test/v1",
  UPSTREAM_API_KEY: "upstream-secret-key",
};
