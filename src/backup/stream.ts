import type { Clock } from "../base/clock.ts";
import type { Snapshot } from "../deps.ts";
import { encodeSeal, Sealing } from "./seal.ts";

/** A reader that stands still for so long is gone, in milliseconds: its copy takes up the disk. */
const idleMsMax = 5 * 60_000;

/** The snapshot and then its seal, at the reader's pace. `onEnd` is told once, however it ends. */
export function sealedStream(
  { stream }: Snapshot,
  clock: Pick<Clock, "after">,
  onEnd: (sent: number, error?: unknown) => void,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  const sealing = new Sealing();
  let sent = 0;
  let stopWaiting = () => {};
  let ended = false;

  function end(error?: unknown): void {
    if (ended) return;
    ended = true;
    stopWaiting();
    // What is broken already cannot be cancelled, and need not be.
    reader.cancel(error).catch(() => {});
    onEnd(sent, error);
  }

  return new ReadableStream({
    async pull(controller) {
      stopWaiting();
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.enqueue(encodeSeal(sealing.end()));
          controller.close();
          return end();
        }
        sealing.add(value);
        sent += value.length;
        controller.enqueue(value);
      } catch (error) {
        end(error);
        throw error;
      }
      stopWaiting = clock.after(idleMsMax, () => {
        const late = new Error(`nobody has read on for ${idleMsMax / 60_000} minutes`);
        controller.error(late);
        end(late);
      });
    },
    cancel: (reason) => end(reason ?? new Error("the reader has left")),
  }, { highWaterMark: 0 });
}
