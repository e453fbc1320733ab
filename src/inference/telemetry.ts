import type { FormatName } from "../base/endpoints.ts";
import { ApiError } from "../base/errors.ts";
import { fromDecimal } from "../base/money.ts";
import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import type { Deps } from "../deps.ts";
import { activityIdOfRequest } from "../ledger/entry.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import type { Caller } from "../projects/auth.ts";
import type { RequestRecord } from "../requests/record.ts";
import type { RequestLog } from "../requests/request_log.ts";
import type { RefusedModels } from "../summaries/refused_models.ts";
import {
  countCallHourly,
  type CountedOutcome,
  countKeyHourly,
  countReasonHourly,
} from "../summaries/hourly_counters.ts";
import type { CallEnding } from "./finish/events.ts";
import { UpstreamError } from "../upstreams/errors.ts";

/** The steps of a call, in order. */
type CallStep = "admit" | "forward" | "meter" | "settle";

/** How a call can end: as an admitted call, or before it was admitted. */
type Outcome =
  | CallEnding
  | { kind: "replayed" }
  | { kind: "paywalled"; reason: string; status: number }
  | { kind: "refused"; errorCode: string; status: number };

/** What the log of requests says of a call, as far as it is known. */
interface CallAbout {
  requestId: string;
  caller: Caller | null;
  user: string | null;
  model: string | null;
  stream: boolean;
}

/** What became of an admitted call. */
interface CallUse {
  usage: TokenUsage | null;
  /** A decimal string, as is `upstreamCost`. */
  cost: string;
  upstreamCost: string | null;
  firstTokenMs: number | null;
  /** Null where the call was not routed. */
  upstream: string | null;
  attempts: number;
  /** Whether the response came from the cache: nothing was sent. */
  isHit: boolean;
}

interface TelemetryOptions {
  /** Our own id of the request. */
  id: string;
  endpoint: FormatName;
  /** When the request arrived, by the clock's `elapsed`. */
  startedAt: number;
  requestId: string;
  requestLog: RequestLog;
  refusedModels: RefusedModels;
}

/**
 * Metrics and traces of one call: how long it waited for the upstream, how long it took besides,
 * and how it ended. Without tracing `span` is null and costs nothing.
 */
export class CallTelemetry {
  readonly span: ReturnType<NonNullable<Deps["tracing"]>["within"]> | null;
  readonly about: CallAbout;
  /** Set before the end of an admitted call. */
  use: CallUse | null = null;
  readonly #id: string;
  readonly #requestLog: RequestLog;
  readonly #refusedModels: RefusedModels;
  readonly #deps: Pick<Deps, "metrics" | "clock" | "committer" | "showCall">;
  readonly #startedAt: number;
  readonly #endpoint: FormatName;
  #step: CallStep = "admit";
  /** When the current wait for the upstream began, and how long earlier waits took. */
  #waitsSince = 0;
  #waitedMs = 0;
  #streamed = false;
  #ended = false;

  constructor(
    deps: Pick<Deps, "metrics" | "clock" | "committer" | "tracing" | "showCall">,
    { id, endpoint, startedAt, requestId, requestLog, refusedModels }: TelemetryOptions,
  ) {
    this.about = { requestId, caller: null, user: null, model: null, stream: false };
    this.#id = id;
    this.#requestLog = requestLog;
    this.#refusedModels = refusedModels;
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
    const isHit = this.use?.isHit && outcome.kind !== "failed";
    metrics.chats[this.#endpoint][isHit ? "hit" : outcome.kind].add();
    if (outcome.kind === "completed") {
      metrics.addedTime.observeMs(clock.elapsed() - this.#startedAt - this.#waitedMs);
    }
    this.#log(outcome);
    this.span?.set({ "farebox.outcome": outcome.kind });
    this.span?.end("errorCode" in outcome ? outcome.errorCode : null);
  }

  /** Adds the call to the log of requests, where its project is known, and shows it. */
  #log(outcome: Outcome): void {
    const { caller, ...about } = this.about;
    if (caller === null) return;
    const { key, snapshot: { project } } = caller;
    const { clock, showCall } = this.#deps;
    const latencyMs = Math.round(clock.elapsed() - this.#startedAt);
    const { usage, firstTokenMs: firstToken, isHit, ...use } = this.use ?? unused;
    const firstTokenMs = firstToken && Math.round(firstToken);
    const isCharged = use.cost !== "0";
    const result = resultOf(outcome);
    // Whoever is being forgotten is not named again.
    if (result.reason === "user_being_forgotten") about.user = null;
    const { user, model } = about;
    const inputTokens = usage ? inputTokensOf(usage) : 0;
    const outputTokens = usage ? outputTokensOf(usage) : 0;
    const counted = isHit && result.outcome !== "failed" ? "repeated" : countedAs(outcome, result);
    this.#count({
      ...{ projectId: project.id, keyId: key.id, model, reason: result.reason },
      ...{ outcome: counted, latencyMs, firstTokenMs, inputTokens, outputTokens },
      cost: fromDecimal(use.cost),
      upstreamCost: use.upstreamCost === null ? null : fromDecimal(use.upstreamCost),
      at: clock.now(),
    });
    const { currency } = project;
    const { cost } = use;
    showCall?.({ ...result, endpoint: this.#endpoint, user, model, latencyMs, cost, currency });
    if (project.requestLogDays === 0) return;
    this.#requestLog.add(project.id, {
      id: this.#id,
      ...about,
      ...result,
      at: clock.now() - latencyMs,
      endpoint: this.#endpoint,
      key: key.id,
      latencyMs,
      firstTokenMs,
      inputTokens,
      cachedTokens: usage?.cachedInput ?? 0,
      outputTokens,
      ...use,
      activityId: isCharged || usage ? activityIdOfRequest(this.#id) : null,
      count: 1,
    });
  }

  /** Counts the request in the summary: by its key, its model and the reason for its end. */
  #count({ model: asked, reason, ...request }: CountedRequest): void {
    const { committer } = this.#deps;
    const { projectId, outcome, at } = request;
    committer.count(countKeyHourly(request));
    if (reason !== null && (outcome === "failed" || outcome === "refused")) {
      committer.count(countReasonHourly(projectId, outcome, reason, at));
    }
    const isRefused = outcome === "refused";
    // Requests for models without a price are counted apart.
    if (asked === null || (isRefused && reason === modelNotFoundCode)) return;
    // Nobody has paid for a refused call: its model may be any text that a price for all allows.
    const model = isRefused ? this.#refusedModels.nameOf(projectId, asked) : asked;
    committer.count(countCallHourly({ ...request, model }));
  }

  #isWait(): boolean {
    return this.#step === "forward" || (this.#step === "meter" && this.#streamed);
  }
}

const unused: CallUse = {
  usage: null,
  cost: "0",
  upstreamCost: null,
  firstTokenMs: null,
  upstream: null,
  attempts: 0,
  isHit: false,
};

type CountedRequest = Parameters<typeof countKeyHourly>[0] & {
  model: string | null;
  reason: string | null;
  firstTokenMs: number | null;
};

/** The code of a request for a model that its project does not have. */
const modelNotFoundCode = "model_not_found";

/** Returns what a request that was not answered from the cache counts as. */
function countedAs({ kind }: Outcome, { outcome }: Pick<RequestRecord, "outcome">): CountedOutcome {
  return kind === "replayed" ? "repeated" : outcome;
}

/** What nginx writes for a client that has disconnected; no client gets it. */
const disconnectedStatus = 499;

function resultOf(outcome: Outcome): Pick<RequestRecord, "outcome" | "status" | "reason"> {
  switch (outcome.kind) {
    case "completed":
      return { outcome: "completed", status: 200, reason: null };
    case "replayed":
      return { outcome: "completed", status: 200, reason: "idempotent_replay" };
    case "canceled":
      return { outcome: "canceled", status: disconnectedStatus, reason: null };
    case "failed":
      return { outcome: "failed", status: outcome.status, reason: outcome.errorCode };
    case "paywalled":
      return { outcome: "refused", status: outcome.status, reason: outcome.reason };
    case "refused":
      return { outcome: "refused", status: outcome.status, reason: outcome.errorCode };
  }
}
