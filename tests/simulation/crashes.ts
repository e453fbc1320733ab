import type { Write } from "../../src/store/kv.ts";
import type { Process } from "./process.ts";
import type { Holder } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";

/** The moment of a process's death. */
type Death = "at once" | "before a commit" | "after a commit" | "in a stream" | "in a forgetting";
const deaths: readonly Death[] = ["at once", "before a commit", "after a commit", "in a stream"];

const restartMinMs = 20;
const restartMaxMs = 12_000;

/** Keeps a number of processes running, kills them as planned, and starts new ones. */
export class Crashes {
  count = 0;
  readonly #timeline: Timeline;
  readonly #start: (name: string) => Promise<Process>;
  readonly #onDeath: () => void;
  readonly #slots: (Process | null)[];
  #armed: Death[] = [];
  #started = 0;
  #planned = 0;

  constructor(
    timeline: Timeline,
    { slots, start, onDeath }: {
      slots: number;
      start: (name: string) => Promise<Process>;
      onDeath: () => void;
    },
  ) {
    this.#timeline = timeline;
    this.#start = start;
    this.#onDeath = onDeath;
    this.#slots = Array.from({ length: slots }, () => null);
  }

  async startAll(): Promise<void> {
    for (const slot of this.#slots.keys()) await this.#fill(slot);
  }

  /** Returns a process that is alive, or null. */
  living(): Process | null {
    const living = this.#slots.filter((process) => process !== null);
    return living.length > 0 ? this.#timeline.pick(living) : null;
  }

  get complete(): boolean {
    return this.#slots.every((process) => process !== null);
  }

  /** Plans this many deaths within this time, at any moment of their work. */
  plan(count: number, withinMs: number): void {
    this.#planned = count;
    for (let n = 0; n < count; n++) {
      const death = this.#timeline.pick(deaths);
      this.#timeline.after(this.#timeline.between(0, withinMs), () => {
        const victim = this.living();
        if (this.count >= this.#planned) return;
        if (death === "at once" && victim) this.#kill(victim);
        else this.#armed.push(death);
      });
    }
  }

  /** Plans another death for the next erasure, in the middle of it. */
  planForgetting(): void {
    this.#armed.push("in a forgetting");
  }

  /** Pending deaths happen now, as soon as a process is alive. */
  async finish(): Promise<void> {
    this.#disarm();
    while (this.count < this.#planned) {
      const victim = this.living();
      if (victim) this.#kill(victim);
      await this.#timeline.pause(restartMinMs);
    }
    this.#disarm();
  }

  /** An erasure may still come, and is interrupted then. */
  #disarm(): void {
    this.#armed = this.#armed.filter((death) => death === "in a forgetting");
  }

  beforeLanding = (holder: Holder): void => this.#strike("before a commit", holder);
  afterLanding = (holder: Holder, { sets }: Write): void => {
    if (sets.some(({ key }) => key[0] === "forget_job")) this.#strike("in a forgetting", holder);
    this.#strike("after a commit", holder);
  };
  inStream = (holder: Holder): void => this.#strike("in a stream", holder);

  #strike(death: Death, holder: Holder): void {
    const at = this.#armed.indexOf(death);
    const victim = this.#slots.find((process) => process?.is(holder));
    // Not always at the first opportunity, or only frequent moments would ever be interrupted.
    if (at < 0 || !victim || !this.#timeline.chance(0.2)) return;
    this.#armed.splice(at, 1);
    this.#kill(victim);
  }

  /** Plans one clean stop within this time, and a new process in its place. */
  planLeave(withinMs: number): void {
    this.#timeline.after(this.#timeline.between(0, withinMs), async () => {
      const leaver = this.living();
      if (!leaver) return;
      const slot = this.#slots.indexOf(leaver);
      this.#slots[slot] = null;
      await leaver.leave();
      // What it did not complete in time is as after a crash.
      this.#onDeath();
      this.#fill(slot);
    });
  }

  #kill(victim: Process): void {
    const slot = this.#slots.indexOf(victim);
    this.count++;
    this.#slots[slot] = null;
    victim.die();
    this.#onDeath();
    const pause = this.#timeline.between(restartMinMs, restartMaxMs);
    this.#timeline.after(pause, () => this.#fill(slot));
  }

  async #fill(slot: number): Promise<void> {
    this.#started++;
    const name = `${String.fromCharCode(65 + slot)}${this.#started}`;
    const process = await this.#start(name);
    this.#slots[slot] = process;
    this.#timeline.trace.note(this.#timeline.elapsed, `${name} starts`);
  }
}
