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
  /** The name of the model at the upstream. */
  model: string;
  terms: ModelTerms;
  /** The request as it is sent to this target. */
  input: ModelRequest;
  /** Names of tools that were removed from the request, because they have no price. */
  removedTools: readonly string[];
  /** Whether the model is known to reason in tokens that it does not show, and whether it may. */
  reasoning: { isKnown(): boolean; isPossible(): boolean };
}

/** A target whose price is bounded for the call. */
export interface BoundedTarget extends CallTarget {
  /** The tiers, token classes and tools that bound the price of the call. */
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
  /** Measures the usage of the response. */
  meter: UsageMeter;
  /** Aborts the upstream's call; the reason is the error that the caller gets. */
  controller: AbortController;
  /** Whether a bridge has sent the request, so that the upstream keeps no response. */
  isBridged: boolean;
  /** When the attempt began, by the clock's `elapsed`. */
  beganAt: number;
  /** The time until the first event, or the end of a whole response, in ms; null before that. */
  firstTokenMs: number | null;
  /** Whether the target's breaker has been told how the attempt ended. */
  isOver: boolean;
  /** Stops the timeouts of the attempt. */
  stopTimers(): void;
}

/** An attempt that has failed in a way for which another target is asked. */
export interface FailedAttempt {
  target: PaidTarget;
  error: UpstreamError;
  /** The attempt's known cost by the provider's price list; null where that is not known. */
  upstreamCost: Amount | null;
}
