import type { Amount } from "../base/money.ts";
import type { PricedCall } from "../pricing/price.ts";
import type { ModelTerms } from "../pricing/terms.ts";
import type { UpstreamError } from "../upstreams/errors.ts";
import type { Target, Upstream } from "../upstreams/upstream.ts";
import type { ModelRequest } from "./model_request.ts";
import type { PromptMedia } from "./admit/prompt_size.ts";
import type { TargetQuote } from "./admit/quote.ts";
import type { UsageMeter } from "./meter/usage_meter.ts";

/** A model of an upstream that can answer a call, with its price and the request for it. */
export interface CallTarget {
  target: Target;
  upstream: Upstream;
  /** The model's name there. */
  model: string;
  terms: ModelTerms;
  /** The request as it is sent there. */
  input: ModelRequest;
  /** Names of tools that were removed from it, because they have no price. */
  removedTools: readonly string[];
  /** Whether the model is known to reason in tokens that it does not show, and whether it may. */
  reasoning: { isKnown(): boolean; isPossible(): boolean };
}

/** A target whose price is bounded for the call. */
export interface BoundedTarget extends CallTarget {
  /** What its price is bounded by. */
  priced: PricedCall;
  media: PromptMedia;
}

/** A target whose cost the call's hold covers. */
export interface PaidTarget extends BoundedTarget {
  quote: TargetQuote;
}

/** One attempt to get a call's response from a target. */
export interface CallAttempt {
  target: PaidTarget;
  /** What the response has used. */
  meter: UsageMeter;
  /** Aborts the upstream's call; the reason is the error that the caller gets. */
  controller: AbortController;
  /** Whether a bridge has sent it, so that the upstream keeps no response. */
  isBridged: boolean;
  /** By the clock's `elapsed`. */
  beganAt: number;
  /** Until the first event, or the end of a whole response; null before, in ms. */
  firstTokenMs: number | null;
  /** Its target's breaker has been told of the error that has ended it. */
  isOver: boolean;
  /** Stops its timeouts. */
  stopTimers(): void;
}

/** An attempt that has failed in a way for which another target is asked. */
export interface FailedAttempt {
  target: PaidTarget;
  error: UpstreamError;
  /** What it is known to have cost by the provider's price list; null where that is not known. */
  upstreamCost: Amount | null;
}
