import { createHash } from "node:crypto";
import { ApiError } from "../../base/errors.ts";
import { afterTaking, type RateState, rateState } from "../../base/rate.ts";
import type { HeaderList } from "../../base/response.ts";
import type { Clock } from "../../base/clock.ts";
import type { FleetPart } from "../../fleet/fleet.ts";
import { createSharedTakes, numbersOf } from "../../fleet/shared_takes.ts";
import type { RateLimitState } from "../../ledger/hold.ts";
import type { KeyLimits } from "../../projects/schema.ts";
import { keyText } from "../../store/batch.ts";

/** A running call's permit under its key's limits. */
export interface Permit {
  rateLimits: RateLimitState;
  /** Counts tokens, once they are known at the end of the response. */
  count(tokens: number): void;
  /** Releases the permit. A second call is harmless. */
  release(): void;
}

/**
 * The rate limits of API keys, and of refused users. Each process counts, and moves on by what the
 * others have counted up to a second ago.
 */
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
  /** What the processes tell each other of these limits. */
  parts: { taken: FleetPart; running: FleetPart };
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
  /** Calls under way in other processes. */
  runningElsewhere: number;
}

const gatesMax = 10_000;
/** The most keys whose running calls one process tells of. */
const toldMax = 300;
const forgetEveryMs = 1_000;
/** What the names of refused users begin with: no id of a key does. */
const refusedStart = "refused:";
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
  /** Whether any user was ever refused: mostly not, and then nothing is looked up. */
  let hasRefused = false;

  function gateOf(keyId: string): Gate {
    const known = rateLimiter.get(keyId);
    if (known) return known;
    const made = { requests: 0, tokens: 0, running: 0, runningElsewhere: 0 };
    if (rateLimiter.size >= gatesMax && now() >= mayForgetAt) forgetIdle();
    rateLimiter.set(keyId, made);
    if (keyId.startsWith(refusedStart)) hasRefused = true;
    return made;
  }

  /** Moves a limit on, and tells the others by how much. */
  function take(
    name: string,
    kind: "requests" | "tokens",
    { count, limit }: { count: number; limit: number },
  ): void {
    const gate = gateOf(name);
    const before = Math.max(gate[kind], now());
    gate[kind] = afterTaking(gate[kind], { count, limit, now: now() });
    taken.took(`${kind} ${name}`, gate[kind] - before);
  }

  const taken = createSharedTakes(now, (taken, ms) => {
    const [kind = "", ...name] = taken.split(" ");
    if (kind !== "requests" && kind !== "tokens") return;
    const gate = gateOf(name.join(" "));
    gate[kind] = Math.max(gate[kind], now()) + ms;
  });

  const running: FleetPart = {
    say() {
      const busy = [...rateLimiter].filter(([, gate]) => gate.running > 0).slice(0, toldMax);
      if (busy.length === 0) return null;
      return Object.fromEntries(busy.map(([name, gate]) => [name, gate.running]));
    },
    hear(others) {
      for (const gate of rateLimiter.values()) gate.runningElsewhere = 0;
      for (const told of others.values()) {
        for (const [name, count] of numbersOf(told)) gateOf(name).runningElsewhere += count;
      }
    },
  };

  /** Other processes are told of it, and no row of theirs may name a user who was erased. */
  const nameOf = ({ projectId, user }: EndUserRef) =>
    refusedStart + createHash("sha256").update(keyText([projectId, user])).digest("base64url");

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
    for (const [keyId, gate] of rateLimiter) {
      const { requests, tokens, running, runningElsewhere } = gate;
      if (running + runningElsewhere === 0 && requests <= now() && tokens <= now()) {
        rateLimiter.delete(keyId);
      }
    }
  }

  return {
    acquire(keyId, { requestsPerMinute, tokensPerMinute, concurrent }) {
      if (requestsPerMinute === null && tokensPerMinute === null && concurrent === null) {
        return noPlace;
      }
      const gate = gateOf(keyId);
      if (concurrent !== null && gate.running + gate.runningElsewhere >= concurrent) {
        throw tooManyRunning(concurrent);
      }
      const before = statesOf(gate, { requestsPerMinute, tokensPerMinute });
      if (exceededLimit(before)) return { limited: before };
      if (requestsPerMinute !== null) {
        take(keyId, "requests", { count: 1, limit: requestsPerMinute });
      }
      gate.running++;
      let inside = true;
      return {
        rateLimits: {
          requests: stateOf(gate.requests, requestsPerMinute),
          tokens: before.tokens,
        },
        count(tokens) {
          if (tokensPerMinute === null) return;
          take(keyId, "tokens", { count: tokens, limit: tokensPerMinute });
        },
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
      const name = nameOf(ref);
      take(name, "requests", { count, limit: perMinute });
      const { requests } = gateOf(name);
      return { requests: rateState(requests, perMinute, now()), tokens: null };
    },
    exceededByRefusals(ref, perMinute) {
      if (perMinute === null || !hasRefused) return null;
      const gate = rateLimiter.get(nameOf(ref));
      if (!gate) return null;
      const requests = rateState(gate.requests, perMinute, now());
      return requests.remaining === 0 ? { requests, tokens: null } : null;
    },
    parts: { taken, running },
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
