import { runInSlices } from "../base/steps.ts";
import { TimeSlice } from "../base/time_slice.ts";
import type { Clock } from "../base/clock.ts";
import { measurePart } from "../pricing/media_tokens.ts";
import { createMediaWork } from "../pricing/media_work.ts";
import type { Format, ModelRequest } from "./format.ts";

/** The content of smaller requests is read at once, in bytes. */
const readAtOnceMax = 64 * 1024;

/**
 * Reads the images, sounds and files of a request, so that what they can cost is known at once
 * afterwards. Yields to other requests. Null for a short request, where that is not needed.
 */
export function measureMedia(
  format: Format,
  request: ModelRequest,
  clock: Clock,
): Promise<void> | null {
  return request.bytes <= readAtOnceMax ? null : measureInSlices(format, request, clock);
}

async function measureInSlices(
  format: Format,
  request: ModelRequest,
  clock: Clock,
): Promise<void> {
  const work = createMediaWork();
  const slice = new TimeSlice(clock);
  for (const { value } of format.mediaParts(request)) {
    await runInSlices(measurePart(value, work), slice);
  }
}
