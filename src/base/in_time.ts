import { ApiError, overloaded } from "./errors.ts";
import type { Incoming } from "./handler.ts";

type InTime = Incoming["inTime"];

interface Timer {
  after(ms: number, work: () => void): () => void;
}

/** Waits for bodies, each so long. Rejects with 408 `request_timeout` where one has not come by then. */
export function createInTime(timer: Timer, deadlineMs: number): InTime {
  return (reading) =>
    new Promise((resolve, reject) => {
      const cancel = timer.after(deadlineMs, () => reject(tooLate(deadlineMs)));
      reading.then((value) => {
        cancel();
        resolve(value);
      }, (error) => {
        cancel();
        reject(error);
      });
    });
}

/** The same, for so many bodies at once: one more is 503, of which `refused` is told. */
export function fewInTime(
  inTime: InTime,
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
      return await inTime(reading);
    } finally {
      waiting--;
    }
  };
}

function tooLate(deadlineMs: number): ApiError {
  return new ApiError(408, {
    message: `The body did not come within ${deadlineMs / 1000} seconds.`,
    code: "request_timeout",
  });
}
