import type { Deps } from "../deps.ts";

type BackOffDeps = Pick<Deps, "clock" | "randomBytes">;

const retryBaseMs = 4;
const steepest = 50;
/** How many attempts follow each other without a pause: most collisions are of two processes. */
const promptAttempts = 3;

// How long a write that others keep preventing is attempted: far longer than any number of
// processes takes, so that contention alone is no error.
const contentionMs = 15_000;
const attemptsMin = 20;

/** Whether a write that other processes prevented is worth another attempt. */
export function isWorthAttempt(attempt: number, sinceMs: number): boolean {
  return attempt < attemptsMin || sinceMs < contentionMs;
}

/**
 * Waits before another attempt to write rows that other processes write too: between zero and twice
 * a growing delay, so that two processes do not collide again and again.
 */
export async function backOff(
  { clock, randomBytes }: BackOffDeps,
  attempt: number,
): Promise<void> {
  if (attempt < promptAttempts) return;
  await clock.sleep(retryBaseMs * Math.min(attempt, steepest) * randomShare(randomBytes));
}

/**
 * Counts attempts to write rows that other processes write too, and ends when they have taken too
 * long.
 */
export async function* attemptsToWrite(deps: BackOffDeps): AsyncGenerator<number> {
  const startedAt = deps.clock.elapsed();
  for (let attempt = 0; isWorthAttempt(attempt, deps.clock.elapsed() - startedAt); attempt++) {
    yield attempt;
    await backOff(deps, attempt + 1);
  }
}

/** A random number from 0 up to 2. */
function randomShare(randomBytes: BackOffDeps["randomBytes"]): number {
  return (randomBytes(1)[0] ?? 0) / 128;
}
