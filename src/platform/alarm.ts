import type { Clock } from "../base/clock.ts";
import type { Alarm, Log } from "../deps.ts";

const grainMs = 1_000;
const delayMaxMs = 7 * 24 * 60 * 60 * 1000;

/**
 * An alarm on a queue of Deno KV: one message for each second in which something is due. A message
 * may be lost, doubled or late, and a server may have no queue: polls find the same work.
 */
export function createAlarm(kv: Deno.Kv, clock: Clock, log: Log): Alarm {
  const scheduled = new Set<number>();
  let works = true;
  return {
    schedule(at) {
      // Rounded up: then everything of that second is due when it fires.
      const second = Math.ceil(at / grainMs);
      if (!works || scheduled.has(second)) return;
      scheduled.add(second);
      const delay = Math.min(Math.max(0, second * grainMs - clock.now()), delayMaxMs);
      kv.enqueue({ wake: second }, { delay }).catch((error) => {
        works = false;
        log("info", "no_queue", { cause: String(error) });
      });
    },
    onWake(wake) {
      const handler = (message: unknown) => {
        if (typeof message === "object" && message !== null) {
          scheduled.delete(Number(Reflect.get(message, "wake")));
        }
        // Never awaited: a handler that runs long is run again meanwhile.
        wake();
      };
      kv.listenQueue(handler).catch((error) => log("info", "no_queue", { cause: String(error) }));
    },
  };
}
