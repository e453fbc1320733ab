import type { Alarm } from "../../src/deps.ts";
import type { Holder } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";

const grainMs = 1_000;

/** The store's queue: a message may be lost, doubled or late, and reaches any process. */
export class AlarmQueue {
  readonly #timeline: Timeline;
  readonly #listeners = new Map<Holder, () => void>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** One message of one process for each second, as the real alarm sends them. */
  alarmOf(holder: Holder): Alarm {
    const asked = new Set<number>();
    return {
      schedule: (at) => {
        const second = Math.ceil(at / grainMs);
        if (holder.dead || asked.has(second)) return;
        asked.add(second);
        this.#send(second * grainMs, () => asked.delete(second));
      },
      onWake: (wake) => void this.#listeners.set(holder, wake),
    };
  }

  #send(at: number, arrived: () => void): void {
    const timeline = this.#timeline;
    const messages = timeline.pick([0, 0, 1, 1, 2]);
    for (let message = 0; message < messages; message++) {
      const late = timeline.chance(0.2) ? timeline.between(1_000, 60_000) : 0;
      timeline.after(at - timeline.now + timeline.between(0, 100) + late, () => {
        arrived();
        this.#deliver();
      });
    }
  }

  #deliver(): void {
    for (const holder of this.#listeners.keys()) {
      if (holder.dead) this.#listeners.delete(holder);
    }
    if (this.#listeners.size === 0) return;
    this.#timeline.pick([...this.#listeners.values()])();
  }
}
