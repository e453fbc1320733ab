import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { Caller } from "../projects/auth.ts";
import { keyText } from "../store/batch.ts";
import { callerLeft } from "./caller_left.ts";
import { lookUp, type Replay, type ReplayMark } from "./replay.ts";

/** The requests of this process that wait for an answer: how many, by its key. */
type Waiters = Map<string, number>;

/** How soon a running answer is looked for again: sooner while it is likely to be a short one. */
const pollMinMs = 50;
const pollMaxMs = 1_000;
const pollGrowth = 1.25;
/** Each takes a place of the whole service, and no limit of users or keys counts it. */
const waitersMax = 8;

/**
 * What is under the idempotency key of a request, if it has one: the stored answer of the same
 * request, waiting for it while it runs; else the request should run. Throws 422 when the key was used
 * with another body, 429 when too many wait for its answer, 499 when the caller leaves meanwhile.
 */
export function findEarlier(
  rooms: { deps: Deps; waiters: Waiters },
  { replay, caller, request }: { replay: ReplayMark | null; caller: Caller; request: Request },
): Promise<Replay> | null {
  return replay && waitFor(rooms, { replay, request, projectId: caller.snapshot.project.id });
}

async function waitFor(
  { deps, waiters }: { deps: Deps; waiters: Waiters },
  { replay, request, projectId }: { replay: ReplayMark; request: Request; projectId: string },
): Promise<Replay> {
  const first = await lookUp(deps, projectId, replay);
  if (first !== "running") return first;
  const leave = enter(waiters, keyText(replay.key));
  try {
    // Ends with the hold, which a running answer cannot renew for ever.
    for (let pollMs = pollMinMs;; pollMs = Math.min(pollMs * pollGrowth, pollMaxMs)) {
      await deps.clock.sleep(pollMs, request.signal);
      if (request.signal.aborted) throw callerLeft;
      const found = await lookUp(deps, projectId, replay);
      if (found !== "running") return found;
    }
  } finally {
    leave();
  }
}

/** Takes a place among those who wait, until the returned function is called. Throws 429. */
function enter(waiters: Waiters, key: string): () => void {
  const before = waiters.get(key) ?? 0;
  if (before >= waitersMax) {
    throw new ApiError(429, {
      message: `${waitersMax} requests wait already for the answer under this Idempotency-Key.`,
      type: "rate_limit_error",
      code: "concurrency_limit",
      headers: { "retry-after": "1" },
    });
  }
  waiters.set(key, before + 1);
  return () => {
    const now = waiters.get(key) ?? 1;
    if (now > 1) waiters.set(key, now - 1);
    else waiters.delete(key);
  };
}
