import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { Ending } from "./events.ts";
import { UpstreamError } from "./upstream_error.ts";

/** What a chat goes through, in this order, as far as it comes. */
export type Step = "admit" | "forward" | "meter" | "settle";

/** How a chat can end: as an answer does, or before it is one. */
type Outcome = Ending | { kind: "paywalled" | "replayed" } | { kind: "refused"; errorCode: string };

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
export class Steps {
  readonly span: ReturnType<NonNullable<Deps["tracing"]>["within"]> | null;
  readonly #deps: Pick<Deps, "meter" | "clock">;
  readonly #startedAt: number;
  #step: Step = "admit";
  /** When the step began, of a step that only waits for the model; and how long such ones took. */
  #waitsSince = 0;
  #waitedMs = 0;
  #streamed = false;
  #ended = false;

  constructor(deps: Pick<Deps, "meter" | "clock" | "tracing">, { id, startedAt }: StepsOptions) {
    this.#deps = deps;
    this.#startedAt = startedAt;
    this.span = deps.tracing?.within("chat", id) ?? null;
    this.span?.set({ "farebox.chat": id });
    this.span?.step("admit");
  }

  /** Goes on to the next step. Of a stream, also the metering is a wait for the model. */
  begin(step: Step, { streamed = this.#streamed }: { streamed?: boolean } = {}): void {
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
    const { whole, streamed: streams } = this.#deps.meter.upstreamTime;
    (streamed ? streams : whole).observeMs(this.#waitedMs);
  }

  /** Counts what the upstream did instead of answering, or that its call was ended from here. */
  fault(fault: unknown): void {
    const { upstreamFaults } = this.#deps.meter;
    if (fault instanceof UpstreamError) upstreamFaults[fault.kind].add();
    else if (fault instanceof ApiError) upstreamFaults.ended.add();
  }

  /** The end, which is counted once: what comes after it changes nothing. */
  end(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    const { meter, clock } = this.#deps;
    meter.chats[outcome.kind].add();
    if (outcome.kind === "completed") {
      meter.addedTime.observeMs(clock.elapsed() - this.#startedAt - this.#waitedMs);
    }
    this.span?.set({ "farebox.outcome": outcome.kind });
    this.span?.end("errorCode" in outcome ? outcome.errorCode : null);
  }

  #isWait(): boolean {
    return this.#step === "forward" || (this.#step === "meter" && this.#streamed);
  }
}
