import type { BodyBudget } from "../base/body_budget.ts";
import type { Place } from "../base/place_limiter.ts";
import type { Amount } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { RateLimitState } from "../ledger/hold.ts";
import type { Caller } from "../projects/auth.ts";
import type { Permit } from "./admit/rate_limiter.ts";
import type { PromptSize } from "./admit/quote.ts";
import type { CallAttempt, CallTarget, FailedAttempt, PaidTarget } from "./attempt.ts";
import type { Format, TextFormat } from "./format.ts";
import type { ModelRequest } from "./model_request.ts";
import type { HistorySize } from "./kept/kept_turns.ts";
import type { CallCache } from "./receive/call_cache.ts";
import type { IdempotencyMark } from "./receive/idempotency.ts";
import type { CallTelemetry } from "./telemetry.ts";

/** A request for a model's response, read and validated, before any money is held for it. */
export interface InferenceCall {
  /** Our own id of the call: the hold's and, as `act_…`, the entry's. */
  id: string;
  telemetry: CallTelemetry;
  /** The id on the response: the caller's own, or ours. */
  requestId: string;
  request: Request;
  /** The budget that the request's body is counted in. */
  bodies: BodyBudget;
  /** The request's place among those that this process handles. */
  place: Place;
  /** When the request arrived, in milliseconds since 1970. */
  receivedAt: number;
  caller: Caller;
  user: string;
  /** The account that pays; null where a wallet would, and nobody has authorized it. */
  ref: AccountRef | null;
  format: Format;
  /** The request as its caller sent it, with the content that it refers to. */
  input: ModelRequest;
  /**
   * The targets that the call can be sent to, in the order in which they are asked; at least one.
   */
  targets: readonly CallTarget[];
  /** Whether a route of the project leads to the targets. */
  isRouted: boolean;
  /**
   * The call's entry in the project's cache; null where the project has none, or not for such a
   * request.
   */
  cache: CallCache | null;
  /** The user's conversation, where the call's route keeps it with one target; else null. */
  conversation: string | null;
  /** The previous response that the request continues; null where it continues none. */
  previousResponse: string | null;
  /**
   * The size of the continued conversation, where we keep it and it is a part of the input; else
   * null.
   */
  history: HistorySize | null;
  /** The most tokens that content which the request refers to by id adds to the prompt. */
  hiddenTokens: number;
  idempotency: IdempotencyMark | null;
}

/** The part of a call that its request alone decides. */
export type ReadCall = Pick<
  InferenceCall,
  | "id"
  | "telemetry"
  | "requestId"
  | "request"
  | "bodies"
  | "place"
  | "receivedAt"
  | "caller"
  | "user"
  | "format"
  | "input"
  | "idempotency"
>;

/** A call that can be refused: its account is known, or it is known that there is none. */
export type RefusableCall = ReadCall & Pick<InferenceCall, "ref">;

/** A call whose hold is written. */
export interface AdmittedCall extends InferenceCall {
  ref: AccountRef;
  permit: Permit;
  /** The state of the rate limits that apply to the call. */
  rateLimits: readonly RateLimitState[];
  /** The targets whose cost the hold covers. */
  targets: readonly PaidTarget[];
  /** The amount of the hold, whichever target answers. */
  held: Amount;
  /** The prompt's size, as it was bounded for the hold. */
  prompt: PromptSize;
  /** The current attempt. */
  attempt: CallAttempt;
  /** Attempts before the current one, which have failed. */
  failed: FailedAttempt[];
  /** The targets that have not been asked. */
  untried: PaidTarget[];
  /** When the last attempt has to be over, by the clock's `elapsed`. */
  until: number;
  /** Whether a part of a response has been sent. No other target may be asked then. */
  hasBegun: boolean;
  /**
   * Whether the store has been asked to charge the call or release its hold, which happens once.
   */
  isEnding: boolean;
}

/** A call whose response is a text of a model. */
export interface TextCall extends AdmittedCall {
  format: TextFormat;
}

/** Narrows a call by the kind of its format. */
export function isTextCall(call: AdmittedCall): call is TextCall {
  return call.format.kind === "text";
}
