import { withDeadline } from "../../src/base/deadline.ts";
import { type App, createApp } from "../../src/app.ts";
import { ApiError } from "../../src/base/errors.ts";
import { createIds } from "../../src/base/ids.ts";
import type { Config } from "../../src/config/config.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { OutsideDeps } from "../../src/deps.ts";
import { createHttpClient } from "../../src/http/client.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createCommitter } from "../../src/store/commit.ts";
import { batchReads } from "../../src/store/read_batcher.ts";
import { type Bound, guardKv, type Kv } from "../../src/store/kv.ts";
import { connectToScript } from "../support/scripted_server.ts";
import type { AlarmQueue } from "./alarm_queue.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { ModelServer } from "./model_server.ts";
import type { Receivers } from "./receivers.ts";
import { createStoreLine, type Holder, type LineEvents, type Weather } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";

/** The environment of the processes, which outlives each of them. */
export interface Surroundings {
  timeline: Timeline;
  store: MemoryStore;
  weather: Weather;
  events: LineEvents;
  model: ModelServer;
  receivers: Receivers;
  queue: AlarmQueue;
  config: Config;
  /** How wrong the clock of each process may be, in ms. */
  clockErrorMaxMs: number;
  /** The resolution of clocks, in ms: with a coarse one much happens at the same time. */
  clockGrainMs: number;
  /** How often a process polls and sweeps, and how soon its clock is corrected. */
  tempo: Tempo;
  seams: Seams;
  /** Called with each log line of a process. */
  log(process: string, level: string, event: string, fields?: Record<string, unknown>): void;
}

/** Intervals of a process, in ms. */
export interface Tempo {
  pollEveryMs: number;
  sweepEveryMs: number;
  /** The longest time that a wrong clock keeps its error. */
  clockSetMaxMs: number;
}

/** Where a defect can be planted, for one process. */
export interface Seams {
  /** The store, inside of its deadlines. */
  kv?: (kv: Kv, timeline: Timeline) => Kv;
  /** Everything that the process depends on. */
  deps?: (deps: OutsideDeps) => OutsideDeps;
}

/** The longest that each part of a clean stop may take, in ms: as in main.ts. */
const stopPartMs = 3_000;

/** The result of a call whose process dies first. */
export const died = Symbol("died");

/** One process of the service, as main.ts runs it. After its death it does nothing any more. */
export class Process implements Holder {
  readonly name: string;
  readonly app: App;
  readonly #life: Life;
  readonly #timeline: Timeline;

  private constructor(life: Life, app: App, timeline: Timeline) {
    this.name = life.name;
    this.#life = life;
    this.app = app;
    this.#timeline = timeline;
  }

  static async start(name: string, around: Surroundings): Promise<Process> {
    const { timeline, clockGrainMs: grainMs } = around;
    const life: Life = {
      name,
      dead: false,
      leaving: false,
      clockErrorMs: 0,
      now: () => Math.floor((timeline.now + Math.round(life.clockErrorMs)) / grainMs) * grainMs,
      deathListeners: new Set(),
    };
    if (around.clockErrorMaxMs > 0) skewClock(life, around);
    const deps = depsOf(life, around);
    const app = await createApp(around.seams.deps?.(deps) ?? deps);
    app.dispatcher.listen();
    const process = new Process(life, app, timeline);
    repeat(deps.clock, () => around.tempo.sweepEveryMs, () => app.sweep());
    repeat(deps.clock, () => around.tempo.pollEveryMs, () => app.dispatcher.poll());
    repeat(deps.clock, () => around.tempo.pollEveryMs / 2, () => app.beat());
    return process;
  }

  get dead(): boolean {
    return this.#life.dead;
  }

  now(): number {
    return this.#life.now();
  }

  /** The same process, as its own store and clock see it. */
  is(holder: Holder): boolean {
    return this.#life === holder;
  }

  die(): void {
    if (this.dead) return;
    this.#life.dead = true;
    this.#timeline.trace.note(this.#timeline.elapsed, `${this.name} dies`);
    for (const onDeath of [...this.#life.deathListeners]) onDeath();
    this.#life.deathListeners.clear();
  }

  /** A clean stop: ends its calls, charges them, completes its deliveries. */
  async leave(): Promise<void> {
    const { app } = this;
    this.#timeline.trace.note(this.#timeline.elapsed, `${this.name} leaves`);
    app.running.cutAll(new ApiError(503, { message: "Restarting.", code: "server_shutdown" }));
    await Promise.race([app.running.idle(), this.#timeline.pause(stopPartMs)]);
    await Promise.race([app.dispatcher.stop(), this.#timeline.pause(stopPartMs)]);
    this.#life.leaving = true;
    await Promise.race([app.leave().catch(() => {}), this.#timeline.pause(stopPartMs)]);
    this.die();
  }

  /** Returns the result of the work, or `died`. */
  orDied<T>(work: Promise<T>): Promise<T | typeof died> {
    if (this.dead) return Promise.resolve(died);
    const { deathListeners } = this.#life;
    return new Promise((resolve, reject) => {
      const onDeath = () => resolve(died);
      deathListeners.add(onDeath);
      work.then(resolve, reject).finally(() => deathListeners.delete(onDeath));
    });
  }
}

interface Life extends Holder {
  dead: boolean;
  leaving: boolean;
  clockErrorMs: number;
  deathListeners: Set<() => void>;
}

/**
 * Makes its clock wrong from the start, and sets it now and then to another error, back or ahead.
 */
function skewClock(
  life: Life,
  around: Pick<Surroundings, "timeline" | "clockErrorMaxMs" | "tempo">,
): void {
  const { timeline, clockErrorMaxMs, tempo: { clockSetMaxMs } } = around;
  life.clockErrorMs = timeline.between(-clockErrorMaxMs, clockErrorMaxMs);
  const lastsMs = timeline.between(clockSetMaxMs / 12, clockSetMaxMs);
  timeline.after(lastsMs, () => life.dead || skewClock(life, around));
}

function depsOf(life: Life, around: Surroundings): OutsideDeps {
  const { timeline, config, model, receivers } = around;
  const random = timeline.fork();
  const clock = clockOf(life, timeline);
  const id = createIds(clock.now, random);
  const line = createStoreLine({ ...around, holder: life });
  const kv = batchReads(guardKv(around.seams.kv?.(line, timeline) ?? line, boundBy(clock)), clock);
  const meter = createMetrics();
  return {
    config,
    kv,
    committer: createCommitter({
      kv,
      newBatchId: () => id("batch"),
      clock,
      meter,
    }),
    clock,
    id,
    randomBytes: (length) => Uint8Array.from({ length }, () => Math.floor(random() * 256)),
    resolve: () => Promise.resolve(["93.184.216.34"]),
    sendWebhook: (request) => receivers.post(life, request),
    fetch: () => Promise.reject(new Error("nothing but models is asked")),
    requestUpstream: createHttpClient(
      connectToScript(model.serve(life)),
      clock,
    ),
    showCall: null,
    takeSnapshot: null,
    sendMail: null,
    alarm: around.queue.alarmOf(life),
    log: (level, event, fields) => {
      if (!life.dead) around.log(life.name, level, event, fields);
    },
    fonts: new Map(),
    guides: new Map(),
    metrics: meter,
    tracing: null,
    process: {
      startedAt: clock.now(),
      runtime: { deno: "simulated" },
      memory: () => ({ rss: 0, heapUsed: 0 }),
      cpuSeconds: () => 0,
    },
  };
}

function clockOf(life: Life, timeline: Timeline): Clock {
  const after = (ms: number, work: () => void) =>
    timeline.after(ms, () => {
      if (!life.dead) work();
    });
  return {
    now: life.now,
    elapsed: () => timeline.elapsed,
    after,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const cancel = after(ms, done);
        signal?.addEventListener("abort", done, { once: true });
        function done() {
          cancel();
          signal?.removeEventListener("abort", done);
          resolve();
        }
      }),
  };
}

function boundBy(clock: Clock): Bound {
  return (work, ms, late) => withDeadline(clock, work, { ms, late });
}

/** Runs a background task now, and again some time after each end: as main.ts does. */
function repeat(clock: Clock, everyMs: () => number, work: () => Promise<void>): void {
  const round = async () => {
    await work().catch(() => {});
    clock.after(everyMs(), round);
  };
  round();
}
