import { createHash } from "node:crypto";
import { ApiError } from "../../base/errors.ts";
import type { RateState } from "../../base/rate.ts";
import { RateTable } from "../../base/rate_table.ts";
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

/** More keys than are in use within a minute: one that is forgotten has its whole limit again. */
const keysMax = 100_000;
/** The most keys whose running calls one process tells of. */
const toldMax = 300;
/** What the names of refused users begin with: no id of a key does. */
const refusedStart = "refused:";
const noLimits: RateLimitState = { requests: null, tokens: null };
const noPlace: Permit = {
  rateLimits: noLimits,
  count() {},
  release() {},
};

/** Keeps limits in memory: bounding load is not worth a write for each request. */
export function createRateLimiter({ elapsed }: Pick<Clock, "elapsed">): RateLimiter {
  /** Callers choose the names of users, so that these have a table of their own. */
  const refused = new RateTable(elapsed);
  const ofKeys = {
    requests: new RateTable(elapsed, keysMax),
    tokens: new RateTable(elapsed, keysMax),
  };
  /** Calls under way of keys with a limit on them, here and in other processes. */
  const running = new Map<string, number>();
  let elsewhere = new Map<string, number>();

  /** Moves a limit on, and tells the others by how much. */
  function take(
    name: string,
    kind: "requests" | "tokens",
    { count, limit }: { count: number; limit: number },
  ): void {
    taken.took(`${kind} ${name}`, tableOf(name, kind).take(name, { count, limit }));
  }

  const tableOf = (name: string, kind: "requests" | "tokens") =>
    name.startsWith(refusedStart) ? refused : ofKeys[kind];

  const taken = createSharedTakes(elapsed, (told, ms) => {
    const [kind = "", ...rest] = told.split(" ");
    if (kind !== "requests" && kind !== "tokens") return;
    const name = rest.join(" ");
    tableOf(name, kind).move(name, ms);
  });

  const runningPart: FleetPart = {
    say() {
      return running.size === 0 ? null : Object.fromEntries([...running].slice(0, toldMax));
    },
    hear(others) {
      elsewhere = new Map();
      for (const told of others.values()) {
        for (const [name, count] of numbersOf(told)) {
          elsewhere.set(name, (elsewhere.get(name) ?? 0) + count);
        }
      }
    },
  };

  /** Other processes are told of it, and no row of theirs may name a user who was erased. */
  const nameOf = ({ projectId, user }: EndUserRef) =>
    refusedStart + createHash("sha256").update(keyText([projectId, user])).digest("base64url");

  const stateOf = (keyId: string, kind: "requests" | "tokens", limit: number | null) =>
    limit === null ? null : ofKeys[kind].state(keyId, limit);
  const statesOf = (
    keyId: string,
    { requestsPerMinute, tokensPerMinute }: Omit<KeyLimits, "concurrent">,
  ): RateLimitState => ({
    requests: stateOf(keyId, "requests", requestsPerMinute),
    tokens: stateOf(keyId, "tokens", tokensPerMinute),
  });

  const runningOf = (keyId: string) => (running.get(keyId) ?? 0) + (elsewhere.get(keyId) ?? 0);

  function leave(keyId: string): void {
    const left = (running.get(keyId) ?? 1) - 1;
    if (left > 0) running.set(keyId, left);
    else running.delete(keyId);
  }

  return {
    acquire(keyId, { requestsPerMinute, tokensPerMinute, concurrent }) {
      if (requestsPerMinute === null && tokensPerMinute === null && concurrent === null) {
        return noPlace;
      }
      if (concurrent !== null && runningOf(keyId) >= concurrent) throw tooManyRunning(concurrent);
      const before = statesOf(keyId, { requestsPerMinute, tokensPerMinute });
      if (exceededLimit(before)) return { limited: before };
      if (requestsPerMinute !== null) {
        take(keyId, "requests", { count: 1, limit: requestsPerMinute });
      }
      let inside = concurrent !== null;
      if (inside) running.set(keyId, (running.get(keyId) ?? 0) + 1);
      return {
        rateLimits: {
          requests: stateOf(keyId, "requests", requestsPerMinute),
          tokens: before.tokens,
        },
        count(tokens) {
          if (tokensPerMinute === null) return;
          take(keyId, "tokens", { count: tokens, limit: tokensPerMinute });
        },
        release() {
          if (inside) leave(keyId);
          inside = false;
        },
      };
    },
    exceeded(keyId, limits) {
      const rates = statesOf(keyId, limits);
      return exceededLimit(rates) ? rates : null;
    },
    countRefused(ref, { perMinute, count }) {
      if (perMinute === null) return noLimits;
      const name = nameOf(ref);
      take(name, "requests", { count, limit: perMinute });
      return { requests: refused.state(name, perMinute), tokens: null };
    },
    exceededByRefusals(ref, perMinute) {
      // Mostly no user was refused, and then no name is made.
      if (perMinute === null || refused.isEmpty) return null;
      const requests = refused.state(nameOf(ref), perMinute);
      return requests.remaining === 0 ? { requests, tokens: null } : null;
    },
    parts: { taken, running: runningPart },
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
    message: `This API key has ${most} requests running, which is the project's limit, ` +
      "'limits.key.concurrent'.",
    type: "rate_limit_error",
    code: "concurrency_limit",
    headers: { "retry-after": "1" },
  });
}
