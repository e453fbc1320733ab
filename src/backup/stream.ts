import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/config.ts";
import type { Snapshot } from "../deps.ts";
import { encodeSeal, Sealing } from "./seal.ts";

/** A reader that stops for this long is gone, in ms: its copy occupies the disk. */
const idleMsMax = 5 * 60_000;

interface SealedStreamDeps {
  clock: Pick<Clock, "after">;
  config: Pick<Config, "secretsKeys">;
}

/**
 * Streams the snapshot and then its seal, at the reader's pace. Calls `onEnd` once, however it
 * ends.
 */
export function sealedStream(
  { stream }: Snapshot,
  { clock, config: { secretsKeys } }: SealedStreamDeps,
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
    // A broken stream cannot be canceled, and need not be.
    reader.cancel(error).catch(() => {});
    onEnd(sent, error);
  }

  return new ReadableStream({
    async pull(controller) {
      stopWaiting();
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.enqueue(encodeSeal(sealing.end(), secretsKeys));
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
        const late = new Error(`the reader stopped for ${idleMsMax / 60_000} minutes`);
        controller.error(late);
        end(late);
      });
    },
    cancel: (reason) => end(reason ?? new Error("the reader disconnected")),
  }, { highWaterMark: 0 });
}
