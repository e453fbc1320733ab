import type { AdmittedCall } from "../call.ts";
import type { PassedBody } from "../format.ts";

/**
 * Notes what a body that has been passed on is charged by, where its upstream reports no tokens:
 * our own count of images and sound, else all that was held. `isCounted`: its text has been added.
 */
export function noteMade(
  { meter, format: { made }, input }: AdmittedCall,
  { isCounted = false, ...body }: PassedBody & { isCounted?: boolean },
): void {
  // A response that says it has no image has produced nothing.
  if (meter.units.images?.count === 0) {
    meter.producedOutput = false;
    return;
  }
  meter.producedOutput = true;
  if (!made || isCounted) return;
  meter.noteUnreadOutput();
  meter.ownOutput = made.countOutput?.(input, body) ?? null;
}
