import { ApiError } from "./errors.ts";
import type { Incoming } from "./handler.ts";
import type { Place, PlaceLimiter } from "./place_limiter.ts";

type InTime = Incoming["inTime"];

interface Timer {
  after(ms: number, work: () => void): () => void;
}

/** The work's result, or a rejection with the error that `late` makes after `ms`. */
export function withDeadline<T>(
  { after }: Timer,
  work: Promise<T>,
  { ms, late }: { ms: number; late: () => Error },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = after(ms, () => reject(late()));
    work.then((value) => {
      cancel();
      resolve(value);
    }, (error) => {
      cancel();
      reject(error);
    });
  });
}

/**
 * Waits for request bodies. Rejects with 408 `request_timeout` when one takes longer than
 * `deadlineMs`.
 */
export function createBodyDeadline(timer: Timer, deadlineMs: number): InTime {
  const bound = { ms: deadlineMs, late: () => tooLate(deadlineMs) };
  return (reading) => withDeadline(timer, reading, bound);
}

/**
 * Bounds the wait for request bodies of one sender by `wait`, and gives each body a place. Where no
 * place is free, it calls `full` and rejects with 503 `overloaded`.
 */
export function waitInPlace(
  wait: InTime,
  { places, sender, full }: { places: PlaceLimiter; sender: string; full: () => void },
): InTime {
  function acquire(): Place {
    try {
      return places.acquire(sender);
    } catch (error) {
      full();
      throw error;
    }
  }
  return async (reading) => {
    // Without a place nobody waits for it.
    reading.catch(() => {});
    const place = acquire();
    try {
      return await wait(reading);
    } finally {
      place.release();
    }
  };
}

function tooLate(deadlineMs: number): ApiError {
  return new ApiError(408, {
    message: `The body did not arrive within ${deadlineMs / 1000} seconds.`,
    code: "request_timeout",
  });
}
