import { readConfig } from "../../src/config/config.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { adminKey } from "../support/world.ts";
import { AlertsAudit } from "./alerts_audit.ts";
import { AlarmQueue } from "./alarm_queue.ts";
import { BooksAudit } from "./books_audit.ts";
import { BudgetsAudit } from "./budgets_audit.ts";
import { Callers } from "./callers.ts";
import { ClaimsAudit } from "./claims_audit.ts";
import { Crashes } from "./crashes.ts";
import { withoutThreads } from "./crypto.ts";
import { DeliveriesAudit } from "./deliveries_audit.ts";
import { HoldersAudit } from "./holders_audit.ts";
import { MemoryStore } from "./memory_store.ts";
import { ModelServer } from "./model_server.ts";
import { PasskeysAudit } from "./passkeys_audit.ts";
import { Process, type Seams, type Surroundings, type Tempo } from "./process.ts";
import { Receivers } from "./receivers.ts";
import type { Weather } from "./store_line.ts";
import { StripeAudit } from "./stripe_audit.ts";
import { auditAttempt } from "./routes_audit.ts";
import { auditSums } from "./sums_audit.ts";
import { allTrimmedAfterMs, retentionDays } from "./trim_audit.ts";
import { Timeline } from "./timeline.ts";
import { type Violation, Violations } from "./violations.ts";
import { stripeKeys } from "./stripe_side.ts";
import { Workload } from "./workload.ts";

/** The results of one seed. */
export interface SeedResult {
  seed: number;
  violation: Violation | null;
  /** A hash of everything that happened: the same seed gives the same. */
  hash: string;
  /** The last steps. */
  trace: readonly string[];
  steps: number;
  calls: number;
  crashes: number;
  entries: number;
  deliveries: number;
  posts: number;
  /** Requests that were sent to another target after the first. */
  rerouted: number;
  simulatedMs: number;
}

const hourMs = 60 * 60 * 1000;
const rules = { attemptsMax: 4, backoffBaseMs: 1_000 };
const usualTempo = { sweepEveryMs: 15_000, clockSetMaxMs: 60_000 };
const callsMin = 200;
/** Calls under way make about as many more when no new work starts. */
const lastCalls = 16;
const crashesMin = 3;
/** The longest that everything may take to end once nothing fails any more, in simulated ms. */
const endMaxMs = 20 * 60 * 60 * 1000;
/** Until then a receiver may keep failing: its breaker makes each attempt take minutes. */
const recoverAfterMs = 20 * 60 * 1000;
const stepMs = 2_000;

/** Prepares the process for simulations; the returned function undoes that. */
export async function prepare(): Promise<() => void> {
  // Loaded beforehand: a seed must not depend on which one needs them first.
  await loadTokenizer();
  await import("stripe");
  await import("@simplewebauthn/server");
  return withoutThreads();
}

/** Runs one seed. `seams` plants a defect. */
export async function runSeed(seed: number, seams: Seams = {}): Promise<SeedResult> {
  const timeline = new Timeline(seed);
  const violations = new Violations(timeline);
  // It would end a process.
  const unhandled = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    const why = () => `nobody waits for ${event.reason?.stack ?? event.reason}`;
    violations.must(false, "the service has no internal error", why);
  };
  globalThis.addEventListener("unhandledrejection", unhandled);
  try {
    return await simulate({ seed, seams, timeline, violations });
  } finally {
    globalThis.removeEventListener("unhandledrejection", unhandled);
  }
}

interface Begun {
  seed: number;
  seams: Seams;
  timeline: Timeline;
  violations: Violations;
}

/** The limits of a file, of a KV server or of PostgreSQL, in any combination. */
const limitsOf = (timeline: Timeline, slots: number) => ({
  isShared: slots > 1 || timeline.chance(0.3),
  checks: timeline.chance(0.2) ? 10 : 100,
  inFlight: timeline.pick([1, 1, 4]),
  namesFailed: timeline.chance(0.3),
});

async function simulate({ seed, seams, timeline, violations }: Begun): Promise<SeedResult> {
  const slots = timeline.chance(0.7) ? 2 : 1;
  const store = new MemoryStore(limitsOf(timeline, slots));
  const model = new ModelServer(timeline);
  const receivers = new Receivers(timeline);
  const books = new BooksAudit(model, violations);
  const budgets = new BudgetsAudit(violations);
  const claims = new ClaimsAudit(books, violations);
  const stripe = new StripeAudit(books, violations);
  const passkeys = new PasskeysAudit(violations);
  const alerts = new AlertsAudit(violations);
  const now = () => timeline.now;
  const clockErrorMaxMs = timeline.pick([0, 0, 700, 60_000, 120_000]);
  const clockGrainMs = timeline.pick([1, 1, 1_000]);
  const judged = { ...rules, clockErrorMaxMs: clockErrorMaxMs + clockGrainMs };
  const deliveries = new DeliveriesAudit({ store, receivers, violations, rules: judged, now });
  const weather: Weather = { writeFaults: 0, readFaults: 0, slownessMs: 2 };
  const tempo: Tempo = { ...usualTempo, pollEveryMs: timeline.pick([3_000, 8_000]) };

  const around: Surroundings = {
    timeline,
    store,
    weather,
    model,
    receivers,
    tempo,
    seams,
    clockErrorMaxMs,
    clockGrainMs,
    queue: new AlarmQueue(timeline),
    config: readConfig(environment, { dev: false }),
    events: {
      beforeLanding: (holder) => crashes.beforeLanding(holder),
      afterLanding: (holder, write) => crashes.afterLanding(holder, write),
      landed: (holder, write) => holders.landed(holder, write),
      fault: () => deliveries.fault(),
    },
    log(process, level, event, fields) {
      if (level === "error" && event === "request" && fields?.status === 500) {
        violations.must(false, "the service has no internal error", () => String(fields.cause));
      }
      if (level !== "info") timeline.trace.note(timeline.elapsed, `${process} ${level} ${event}`);
    },
  };
  const crashes = new Crashes(timeline, {
    slots,
    start: (name) => Process.start(name, around),
    onDeath: () => deliveries.fault(),
  });
  const isAlive = () => crashes.complete;
  const world = { timeline, store, weather, tempo, clockErrorMaxMs, isAlive };
  const holders = new HoldersAudit(world, violations);
  model.onPiece = crashes.inStream;
  auditModel(model, violations);
  store.onLanded = (write) => {
    for (const audit of [books, budgets, deliveries, passkeys, alerts]) audit.landed(write);
  };
  const living = () => crashes.living();
  const callers = new Callers({ timeline, claims, violations, living });
  const audits = { claims, books, stripe, passkeys };
  const workload = new Workload({ ...audits, timeline, callers, crashes, receivers, store });

  const parts: Play = { ...world, violations, crashes, callers, workload, deliveries };
  await play(parts);
  if (!violations.first) {
    for (const audit of [books, claims, stripe, passkeys, deliveries]) audit.atTheEnd(store);
    auditSums(store, violations);
    violations.must(callers.calls >= callsMin, "a seed does enough", () => `${callers.calls}`);
    violations.must(crashes.count >= crashesMin, "a seed does enough", () => "too few crashes");
    // Old age is much the same in all seeds: the time is better spent on another start.
    if (timeline.chance(0.3)) {
      await growOld(parts);
      deliveries.atTheVeryEnd();
      books.atTheEnd(store);
    }
  }
  return {
    seed,
    violation: violations.first,
    ...summaryOf(timeline),
    calls: callers.calls,
    crashes: crashes.count,
    entries: books.entries.size,
    deliveries: deliveries.expected,
    rerouted: [...model.attempts.values()].filter(({ length }) => length > 1).length,
    posts: [...receivers.posts.values()].reduce((sum, posts) => sum + posts.length, 0),
  };
}

/** Judges the calls that reach the model. */
function auditModel(model: ModelServer, violations: Violations): void {
  model.onRepeated = (call, before) => auditAttempt(violations, call, before);
  model.onStray = (call) =>
    violations.must(false, "a response is continued where it is kept", () => JSON.stringify(call));
  model.onForeign = (call) =>
    violations.must(false, "no response reaches another user", () => JSON.stringify(call));
}

function summaryOf({ trace: { hash, last: trace, steps }, elapsed: simulatedMs }: Timeline) {
  return { hash, trace, steps, simulatedMs };
}

const environment = {
  BASE_URL: "https://farebox.test",
  ADMIN_KEY: adminKey,
  SECRETS_KEY: btoa("0123456789abcdef0123456789abcdef"),
  UPSTREAM_URL: "https://upstream.test/v1",
  UPSTREAM_API_KEY: "upstream-secret-key",
  UPSTREAM_TIMEOUT_MS: "90000",
  UPSTREAM_IDLE_MS: "40000",
  STRIPE_SECRET_KEY: stripeKeys.secretKey,
  STRIPE_WEBHOOK_SECRET: stripeKeys.webhookSecret,
  WEBHOOK_RETENTION_DAYS: String(retentionDays),
  WEBHOOK_MAX_ATTEMPTS: String(rules.attemptsMax),
  WEBHOOK_BACKOFF_BASE_MS: String(rules.backoffBaseMs),
};

interface Play {
  timeline: Timeline;
  weather: Weather;
  tempo: Tempo;
  store: MemoryStore;
  violations: Violations;
  crashes: Crashes;
  callers: Callers;
  workload: Workload;
  deliveries: DeliveriesAudit;
}

/** Starts without faults, works through storms and crashes, and ends without faults again. */
async function play(parts: Play): Promise<void> {
  const { timeline, weather, store, violations, crashes, callers, workload, deliveries } = parts;
  const broken = () => violations.first !== null;
  await crashes.startAll();
  await until(workload.open());

  const calls = callsMin - lastCalls;
  const lengthMs = calls * 350;
  planWeather(timeline, weather, lengthMs);
  crashes.plan(crashesMin + timeline.pick([0, 0, 1]), lengthMs * 0.9);
  if (timeline.chance(0.5)) crashes.planLeave(lengthMs * 0.9);
  await until(workload.run(calls));
  await until(crashes.finish());

  Object.assign(weather, { writeFaults: 0, readFaults: 0, slownessMs: 2 });
  workload.settle();
  const quiet = () =>
    broken() ||
    (callers.underWay === 0 && crashes.complete && isQuiet(store) && deliveries.isQuiet);
  const startedAt = timeline.elapsed;
  while (!quiet()) {
    const lasted = timeline.elapsed - startedAt;
    if (lasted > recoverAfterMs) workload.recover();
    // What takes that long waits for a breaker or a lost alarm: it need not be checked
    // continuously.
    if (lasted > 45_000) Object.assign(parts.tempo, { pollEveryMs: 20_000, sweepEveryMs: 60_000 });
    await timeline.run(broken, lasted > 180_000 ? 10 * stepMs : stepMs);
    violations.must(lasted < endMaxMs, "everything ends", () => stateOf(store, callers));
  }
  await until(workload.lookAround(callsMin));

  async function until(work: Promise<void>): Promise<void> {
    let done = false;
    let fault: unknown = null;
    work.catch((error) => (fault = error)).finally(() => (done = true));
    await timeline.run(() => done || broken());
    if (fault) throw fault;
  }
}

/**
 * No calls for so long that all temporary records are removed: through storms, and while the last
 * of them are redelivered.
 */
async function growOld(parts: Play): Promise<void> {
  const { timeline, weather, tempo, violations, crashes, workload } = parts;
  const broken = () => violations.first !== null;
  const rare = 8 * hourMs;
  Object.assign(tempo, { pollEveryMs: rare, sweepEveryMs: rare, clockSetMaxMs: rare });
  Object.assign(weather, { writeFaults: 0.1, readFaults: 0.05 });
  await timeline.run(broken, (24 * retentionDays + 1) * hourMs);
  for (let round = 0; round < 3 && !broken(); round++) {
    workload.redeliver();
    crashes.living()?.app.sweep().catch(() => {});
    await timeline.run(broken, timeline.between(0, 20_000));
  }
  await timeline.run(broken, allTrimmedAfterMs - 48 * hourMs);
  Object.assign(weather, { writeFaults: 0, readFaults: 0 });
  await timeline.run(broken, 48 * hourMs);
}

/** Nothing is held, nothing waits to be delivered. */
function isQuiet(store: MemoryStore): boolean {
  return ["holding", "outbox", "due", "forget_job"].every((prefix) =>
    store.list({ prefix: [prefix], limit: 1 }).length === 0
  );
}

function stateOf(store: MemoryStore, { underWay }: Callers): string {
  const counts = ["holding", "outbox", "due", "forget_job"].map((prefix) =>
    `${store.list({ prefix: [prefix], limit: 1_000 }).length} ${prefix}`
  );
  return `${underWay} calls under way, rows: ${counts.join(", ")}`;
}

/** Several storms, each with its own faults, with calm between them. */
function planWeather(timeline: Timeline, weather: Weather, lengthMs: number): void {
  const storms = timeline.pick([0, 1, 2, 2, 3]);
  for (let storm = 0; storm < storms; storm++) {
    const from = timeline.between(0, lengthMs * 0.9);
    const strength = timeline.pick([0.03, 0.1, 0.3]);
    const severe = {
      writeFaults: strength,
      readFaults: strength * timeline.pick([0, 0.5]),
      slownessMs: timeline.pick([2, 40, 400]),
    };
    timeline.after(from, () => Object.assign(weather, severe));
    timeline.after(from + timeline.between(2_000, 25_000), () => {
      Object.assign(weather, { writeFaults: 0, readFaults: 0, slownessMs: 2 });
    });
  }
}
