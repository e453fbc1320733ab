import { runInSlices } from "../../base/steps.ts";
import { TimeSlice } from "../../base/time_slice.ts";
import type { Clock } from "../../base/clock.ts";
import { measurePart } from "../../pricing/media_tokens.ts";
import { createMediaWork } from "../../pricing/media_work.ts";
import type { Format } from "../format.ts";
import type { ModelRequest } from "../model_request.ts";

/** The size of a request, in bytes, up to which its content is read without a pause. */
const readAtOnceMax = 64 * 1024;

/**
 * Reads the images, sounds and files of a request ahead, yielding to other requests, so that their
 * bounds are known at once afterwards. Null where that is not needed: for a short request, and for
 * text alone.
 */
export function measureMedia(
  format: Format,
  request: ModelRequest,
  clock: Clock,
): Promise<void> | null {
  if (request.bytes <= readAtOnceMax) return null;
  for (const _ of format.mediaParts(request)) return measureInSlices(format, request, clock);
  return null;
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
