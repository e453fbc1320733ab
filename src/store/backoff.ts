import type { Deps } from "../deps.ts";

const retryBaseMs = 4;

/**
 * Before one more attempt at what others write to as well: from none to twice a growing delay, so
 * that two processes do not meet again and again.
 */
export async function backOff(
  { clock, randomBytes }: Pick<Deps, "clock" | "randomBytes">,
  attempt: number,
): Promise<void> {
  const share = (randomBytes(1)[0] ?? 0) / 128;
  await clock.sleep(retryBaseMs * attempt * share);
}
