import type { FormatName } from "../base/format_names.ts";
import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { CallEnding } from "./events.ts";
import { UpstreamError } from "../upstreams/errors.ts";

/** The steps of a call, in order. */
export type CallStep = "admit" | "forward" | "meter" | "settle";

/** How a call can end: as an admitted call, or before it was admitted. */
type Outcome = CallEnding | { kind: "paywalled" | "replayed" } | {
  kind: "refused";
  errorCode: string;
};

interface StepsOptions {
  /** Our own id of the request. */
  id: string;
  endpoint: FormatName;
  /** When the request arrived, by the clock's `elapsed`. */
  startedAt: number;
}

/**
 * Metrics and traces of one call: how long it waited for the upstream, how long it took besides,
 * and how it ended. Without tracing `span` is null and costs nothing.
 */
export class CallTelemetry {
  readonly span: ReturnType<NonNullable<Deps["tracing"]>["within"]> | null;
  readonly #deps: Pick<Deps, "metrics" | "clock">;
  readonly #startedAt: number;
  readonly #endpoint: FormatName;
  #step: CallStep = "admit";
  /** When the current wait for the upstream began, and how long earlier waits took. */
  #waitsSince = 0;
  #waitedMs = 0;
  #streamed = false;
  #ended = false;

  constructor(
    deps: Pick<Deps, "metrics" | "clock" | "tracing">,
    { id, endpoint, startedAt }: StepsOptions,
  ) {
    this.#deps = deps;
    this.#endpoint = endpoint;
    this.#startedAt = startedAt;
    this.span = deps.tracing?.within("chat", id) ?? null;
    this.span?.set({ "farebox.chat": id, "farebox.endpoint": endpoint });
    this.span?.step("admit");
  }

  /**
   * Begins the next step; each attempt is one of its own. For a stream, metering is a wait for the
   * upstream too.
   */
  begin(
    step: CallStep,
    { streamed = this.#streamed, upstream }: { streamed?: boolean; upstream?: string } = {},
  ): void {
    const waited = this.#isWait();
    const before = this.#step;
    this.#step = step;
    this.#streamed = streamed;
    this.span?.step(step, upstream === undefined ? {} : { "farebox.upstream": upstream });
    if (!waited && !this.#isWait()) return;
    const now = this.#deps.clock.elapsed();
    if (waited) this.#waitedMs += now - this.#waitsSince;
    this.#waitsSince = now;
    if (before !== "forward" || step !== "meter") return;
    const { whole, streamed: streams } = this.#deps.metrics.upstreamTime;
    (streamed ? streams : whole).observeMs(this.#waitedMs);
  }

  /** Counts an upstream error, or that we ended the call. */
  countError(error: unknown): void {
    const { upstreamErrors } = this.#deps.metrics;
    if (error instanceof UpstreamError) upstreamErrors[error.kind].add();
    else if (error instanceof ApiError) upstreamErrors.ended.add();
  }

  /** Records the ending. Only the first call counts. */
  end(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    const { metrics, clock } = this.#deps;
    metrics.chats[this.#endpoint][outcome.kind].add();
    if (outcome.kind === "completed") {
      metrics.addedTime.observeMs(clock.elapsed() - this.#startedAt - this.#waitedMs);
    }
    this.span?.set({ "farebox.outcome": outcome.kind });
    this.span?.end("errorCode" in outcome ? outcome.errorCode : null);
  }

  #isWait(): boolean {
    return this.#step === "forward" || (this.#step === "meter" && this.#streamed);
  }
}
