import type { CompleteResponse } from "../upstream_response.ts";
import type { UsageMeter } from "./usage_meter.ts";

/** Adds to a meter what a complete response has used. */
export function noteComplete(meter: UsageMeter, complete: CompleteResponse): void {
  for (const text of complete.texts) meter.addText(text);
  for (const url of complete.images) meter.addImage(url);
  meter.addServed(complete.served);
  for (const usage of complete.usages) meter.addUsage(usage);
}
