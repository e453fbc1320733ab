import { ApiError } from "../base/errors.ts";
import { afterTaking, type RateState, rateState } from "../base/rate.ts";
import type { HeaderList } from "../base/response.ts";
import type { Clock } from "../base/clock.ts";
import type { RateLimitState } from "../ledger/hold.ts";
import type { KeyLimits } from "../projects/schema.ts";
import { keyText } from "../store/batch.ts";

/** A running call's permit under its key's limits. */
export interface Permit {
  rateLimits: RateLimitState;
  /** Counts tokens, once they are known at the end of the response. */
  count(tokens: number): void;
  /** Releases the permit. A second call is harmless. */
  release(): void;
}

/** The rate limits of API keys, and of refused users. Each process counts for itself. */
export interface RateLimiter {
  /** A permit, or the limits that are exceeded. Throws 429 `concurrency_limit`. */
  acquire(keyId: string, limits: KeyLimits): Permit | { limited: RateLimitState };
  /**
   * Counts a refused request toward its user's rate, since no hold is written for it. Returns the
   * state of the limits after it.
   */
  countRefused(
    ref: EndUserRef,
    refused: { perMinute: number | null; count: number },
  ): RateLimitState;
  /** The limits of a key that are used up, or null; takes nothing from them. */
  exceeded(keyId: string, limits: KeyLimits): RateLimitState | null;
  /** The limits of a user whose refused requests have used up the rate; else null. */
  exceededByRefusals(ref: EndUserRef, perMinute: number | null): RateLimitState | null;
}

/** A user of a project. */
export interface EndUserRef {
  projectId: string;
  user: string;
}

interface Gate {
  requests: number;
  tokens: number;
  running: number;
}

const gatesMax = 10_000;
const forgetEveryMs = 1_000;
const noLimits: RateLimitState = { requests: null, tokens: null };
const noPlace: Permit = {
  rateLimits: noLimits,
  count() {},
  release() {},
};

/** Keeps limits in memory: bounding load is not worth a write for each request. */
export function createRateLimiter({ elapsed: now }: Pick<Clock, "elapsed">): RateLimiter {
  const rateLimiter = new Map<string, Gate>();
  let mayForgetAt = 0;

  function gateOf(keyId: string): Gate {
    const known = rateLimiter.get(keyId);
    if (known) return known;
    const made = { requests: 0, tokens: 0, running: 0 };
    if (rateLimiter.size >= gatesMax && now() >= mayForgetAt) forgetIdle();
    rateLimiter.set(keyId, made);
    return made;
  }

  const nameOf = ({ projectId, user }: EndUserRef) => keyText([projectId, user]);

  const stateOf = (usedUp: number, limit: number | null) =>
    limit === null ? null : rateState(usedUp, limit, now());
  const statesOf = (
    gate: Gate,
    { requestsPerMinute, tokensPerMinute }: Omit<KeyLimits, "concurrent">,
  ): RateLimitState => ({
    requests: stateOf(gate.requests, requestsPerMinute),
    tokens: stateOf(gate.tokens, tokensPerMinute),
  });

  function forgetIdle(): void {
    // With very many busy entries, not repeated for each new one.
    mayForgetAt = now() + forgetEveryMs;
    for (const [keyId, { requests, tokens, running }] of rateLimiter) {
      if (running === 0 && requests <= now() && tokens <= now()) rateLimiter.delete(keyId);
    }
  }

  return {
    acquire(keyId, { requestsPerMinute, tokensPerMinute, concurrent }) {
      if (requestsPerMinute === null && tokensPerMinute === null && concurrent === null) {
        return noPlace;
      }
      const gate = gateOf(keyId);
      if (concurrent !== null && gate.running >= concurrent) throw tooManyRunning(concurrent);
      const before = statesOf(gate, { requestsPerMinute, tokensPerMinute });
      if (exceededLimit(before)) return { limited: before };
      const take = (usedUp: number, limit: number | null, count: number) =>
        limit === null ? 0 : afterTaking(usedUp, { count, limit, now: now() });
      gate.requests = take(gate.requests, requestsPerMinute, 1);
      gate.running++;
      let inside = true;
      return {
        rateLimits: {
          requests: stateOf(gate.requests, requestsPerMinute),
          tokens: before.tokens,
        },
        count: (tokens) => void (gate.tokens = take(gate.tokens, tokensPerMinute, tokens)),
        release() {
          if (inside) gate.running--;
          inside = false;
        },
      };
    },
    exceeded(keyId, limits) {
      const gate = rateLimiter.get(keyId);
      const rates = gate && statesOf(gate, limits);
      return rates && exceededLimit(rates) ? rates : null;
    },
    countRefused(ref, { perMinute, count }) {
      if (perMinute === null) return noLimits;
      const gate = gateOf(nameOf(ref));
      gate.requests = afterTaking(gate.requests, { count, limit: perMinute, now: now() });
      return { requests: rateState(gate.requests, perMinute, now()), tokens: null };
    },
    exceededByRefusals(ref, perMinute) {
      const gate = perMinute === null ? undefined : rateLimiter.get(nameOf(ref));
      if (!gate || perMinute === null) return null;
      const requests = rateState(gate.requests, perMinute, now());
      return requests.remaining === 0 ? { requests, tokens: null } : null;
    },
  };
}

/** The limit that is used up, or null. */
export function exceededLimit(
  { requests, tokens }: RateLimitState,
): { limit: "requests" | "tokens"; state: RateState } | null {
  if (requests?.remaining === 0) return { limit: "requests", state: requests };
  return tokens?.remaining === 0 ? { limit: "tokens", state: tokens } : null;
}

/** 429 that tells the client when to retry. */
export function rateLimitedError(rates: RateLimitState): ApiError {
  const { limit, state } = exceededLimit(rates) ?? { limit: "requests", state: null };
  const waitMs = state?.waitMs ?? 0;
  return new ApiError(429, {
    message: `Rate limit reached: ${state?.limit} ${limit} a minute. Try again in ${
      durationText(waitMs)
    }.`,
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    headers: {
      ...rateHeaders([rates]),
      "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
      "retry-after-ms": String(waitMs),
    },
  });
}

/** An error with the rate limits in its headers. */
export function withRateHeaders(error: unknown, rates: readonly RateLimitState[]): unknown {
  return error instanceof ApiError ? error.with(rateHeaders(rates)) : error;
}

/** OpenAI's rate limit headers, for the limit with less remaining. */
export function rateHeaders(rates: readonly RateLimitState[]): HeaderList {
  return {
    ...headersFor("requests", rates.map(({ requests }) => requests)),
    ...headersFor("tokens", rates.map(({ tokens }) => tokens)),
  };
}

function headersFor(name: string, states: readonly (RateState | null)[]): HeaderList {
  let least: RateState | null = null;
  for (const state of states) {
    if (state && (!least || state.remaining < least.remaining)) least = state;
  }
  if (!least) return {};
  return {
    [`x-ratelimit-limit-${name}`]: String(least.limit),
    [`x-ratelimit-remaining-${name}`]: String(least.remaining),
    [`x-ratelimit-reset-${name}`]: durationText(least.resetMs),
  };
}

/** A duration as OpenAI writes it: `17ms`, `1.5s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.ceil(ms - minutes * 60_000) / 1000;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}

function tooManyRunning(most: number): ApiError {
  return new ApiError(429, {
    message: `This API key has ${most} requests running, which is its limit.`,
    type: "rate_limit_error",
    code: "concurrency_limit",
    headers: { "retry-after": "1" },
  });
}
