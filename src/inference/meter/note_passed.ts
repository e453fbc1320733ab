import type { LargeBody } from "../ask/read_whole.ts";
import type { AdmittedCall } from "../call.ts";
import type { PassedBody } from "../format.ts";
import { BodyScan } from "./body_scan.ts";

/** Notes what a whole body that is passed on has used, and returns its text. */
export function notePassed(
  call: AdmittedCall,
  { start: bytes, format, kind }: Pick<LargeBody, "start" | "format" | "kind">,
): string {
  const { attempt: { meter }, telemetry } = call;
  telemetry.begin("meter");
  const body = new TextDecoder().decode(bytes);
  const isText = kind === "text";
  const text = format?.textOf?.(body, !isText);
  if (text !== undefined) meter.addText(text);
  if (!isText) {
    const scan = new BodyScan(call);
    scan.push(bytes);
    scan.end();
  }
  noteUncounted(call, format, {
    start: bytes,
    bytes: bytes.length,
    isCounted: text !== undefined,
  });
  return body;
}

/**
 * Notes what a body that has been passed on is charged by, where its upstream reports no tokens:
 * our own count of images and sound, else all that was held. `isCounted`: its text has been added.
 */
export function noteUncounted(
  { attempt: { meter }, input }: AdmittedCall,
  format: LargeBody["format"],
  { isCounted = false, ...body }: PassedBody & { isCounted?: boolean },
): void {
  // A text that was too large to be parsed.
  if (!format) return meter.noteUnreadOutput();
  // A response that says it has no image has produced nothing.
  meter.producedOutput = meter.units.images?.count !== 0;
  if (!meter.producedOutput || format.classes.output === null || isCounted) return;
  meter.noteUnreadOutput();
  meter.ownOutput = format.countOutput?.(input, body) ?? null;
}
