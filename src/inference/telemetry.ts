import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { CallEnding } from "./events.ts";
import { UpstreamError } from "../upstreams/errors.ts";

/** What a chat goes through, in this order, as far as it comes. */
export type CallStep = "admit" | "forward" | "meter" | "settle";

/** How a chat can end: as an answer does, or before it is one. */
type Outcome = CallEnding | { kind: "paywalled" | "replayed" } | {
  kind: "refused";
  errorCode: string;
};

interface StepsOptions {
  /** Our own id of the request. */
  id: string;
  /** When it came, by the clock's `elapsed`. */
  startedAt: number;
}

/**
 * The steps of one chat, for graphs and traces: how long it waited for its model, how long it took
 * besides, and how it ended. Where nobody traces, `span` is null and costs nothing.
 */
export class CallTelemetry {
  readonly span: ReturnType<NonNullable<Deps["tracing"]>["within"]> | null;
  readonly #deps: Pick<Deps, "metrics" | "clock">;
  readonly #startedAt: number;
  #step: CallStep = "admit";
  /** When the step began, of a step that only waits for the model; and how long such ones took. */
  #waitsSince = 0;
  #waitedMs = 0;
  #streamed = false;
  #ended = false;

  constructor(deps: Pick<Deps, "metrics" | "clock" | "tracing">, { id, startedAt }: StepsOptions) {
    this.#deps = deps;
    this.#startedAt = startedAt;
    this.span = deps.tracing?.within("chat", id) ?? null;
    this.span?.set({ "farebox.chat": id });
    this.span?.step("admit");
  }

  /** Goes on to the next step. Of a stream, also the metering is a wait for the model. */
  begin(step: CallStep, { streamed = this.#streamed }: { streamed?: boolean } = {}): void {
    const waited = this.#isWait();
    const before = this.#step;
    this.#step = step;
    this.#streamed = streamed;
    this.span?.step(step);
    if (!waited && !this.#isWait()) return;
    const now = this.#deps.clock.elapsed();
    if (waited) this.#waitedMs += now - this.#waitsSince;
    this.#waitsSince = now;
    if (before !== "forward" || step !== "meter") return;
    const { whole, streamed: streams } = this.#deps.metrics.upstreamTime;
    (streamed ? streams : whole).observeMs(this.#waitedMs);
  }

  /** Counts what the upstream did instead of answering, or that its call was ended from here. */
  countError(fault: unknown): void {
    const { upstreamFaults } = this.#deps.metrics;
    if (fault instanceof UpstreamError) upstreamFaults[fault.kind].add();
    else if (fault instanceof ApiError) upstreamFaults.ended.add();
  }

  /** The end, which is counted once: what comes after it changes nothing. */
  end(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    const { metrics, clock } = this.#deps;
    metrics.chats[outcome.kind].add();
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
