import type { Deps } from "../deps.ts";

const retryBaseMs = 4;

/**
 * Waits before another attempt to write what others write too: between zero and twice a growing
 * delay, so that two processes do not collide again and again.
 */
export async function backOff(
  { clock, randomBytes }: Pick<Deps, "clock" | "randomBytes">,
  attempt: number,
): Promise<void> {
  const share = (randomBytes(1)[0] ?? 0) / 128;
  await clock.sleep(retryBaseMs * attempt * share);
}
