import { ApiError, overloaded } from "./errors.ts";
import type { Incoming } from "./handler.ts";

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

/** The same for at most `most` bodies at once. One more calls `refused` and rejects with 503. */
export function limitWaitingBodies(
  wait: InTime,
  { most, refused }: { most: number; refused: () => void },
): InTime {
  let waiting = 0;
  return async (reading) => {
    if (waiting >= most) {
      reading.catch(() => {});
      refused();
      throw overloaded();
    }
    waiting++;
    try {
      return await wait(reading);
    } finally {
      waiting--;
    }
  };
}

function tooLate(deadlineMs: number): ApiError {
  return new ApiError(408, {
    message: `The body did not arrive within ${deadlineMs / 1000} seconds.`,
    code: "request_timeout",
  });
}
