import { CallTelemetry } from "../../src/inference/telemetry.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { type Figure, median, show } from "./figures.ts";

const rounds = 9;
const chatsPerRound = 200_000;
const barMicroseconds = 5;
const entry = {
  kind: "usage" as const,
  delta: "-0.000123",
  shortfall: "0",
  usage: {
    uncachedInputTokens: 10,
    cachedInputTokens: 2,
    cacheWriteTokens: 0,
    outputTokens: 50,
    reasoningTokens: 0,
  },
};

/** Measures what counting costs the main thread: all metrics of one chat and its two commits. */
export function benchMetrics(): Promise<Figure[]> {
  const metrics = createMetrics();
  const clock = {
    now: () => Date.now(),
    elapsed: () => performance.now(),
    sleep: () => Promise.resolve(),
    after: () => () => {},
  };
  const committer = {
    commit: () => Promise.resolve(null),
    count() {},
    carry() {},
    carried: () => 0,
    flush: () => Promise.resolve(),
    budgets: {
      load: () => null,
      use: () => {
        throw new Error("not used");
      },
    },
    idle: () => Promise.resolve(),
  };
  const deps = { metrics, clock, tracing: null, showCall: null, committer };
  const request = metrics.requests("/v1/chat/completions", "POST");

  function commit(): void {
    const startedAt = clock.elapsed();
    metrics.commitWrites.observe(12);
    metrics.commits.landed.add();
    metrics.commitTime.observeMs(clock.elapsed() - startedAt);
  }

  function chat(): void {
    const startedAt = clock.elapsed();
    const telemetry = new CallTelemetry(deps, {
      id: "req_01M8002M8HG106F7PGK75CANZ6",
      endpoint: "chat",
      startedAt,
      requestId: "req_1",
      requestLog: { add() {}, flush: () => Promise.resolve() },
      refusedModels: { nameOf: (_, model) => model },
    });
    commit();
    telemetry.begin("forward");
    telemetry.begin("meter");
    telemetry.begin("settle");
    commit();
    metrics.entry(entry, "usd");
    telemetry.end({ kind: "completed" });
    request.seen(200, clock.elapsed() - startedAt);
  }

  const times = Array.from({ length: rounds }, () => {
    const startedAt = performance.now();
    for (let n = 0; n < chatsPerRound; n++) chat();
    return ((performance.now() - startedAt) / chatsPerRound) * 1000;
  });
  const value = median(times);
  const figure = {
    name: "counting, for one chat whose two commits are its own",
    value,
    unit: "µs",
    bar: `< ${barMicroseconds}`,
    ok: value < barMicroseconds,
  };
  show(figure);
  return Promise.resolve([figure]);
}
