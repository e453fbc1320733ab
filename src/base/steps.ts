import type { TimeSlice } from "./time_slice.ts";

/** Work that blocks other requests, in steps that are short: it may be interrupted between them. */
export type Steps<T> = Generator<void, T, void>;

/** Does all steps in one go. */
export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Does the steps, and lets other requests run when a slice is used up. */
export async function runInSlices<T>(steps: Steps<T>, slice: TimeSlice): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (slice.expired) await slice.yield();
  }
}
