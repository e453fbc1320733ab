import { setImmediate } from "node:timers";
import { mulberry32 } from "../support/random.ts";

interface Moment {
  at: number;
  order: number;
  work: (() => void) | null;
}

/** The start of every simulation, in milliseconds since 1970: shortly before the year's end. */
const startOfTime = Date.UTC(2025, 11, 31, 23, 59, 15);

/**
 * Time that moves from one event to the next, in fractions of a millisecond, and the only source of
 * randomness. Whatever an event causes completes before the next one.
 */
export class Timeline {
  readonly trace = new Trace();
  #now = startOfTime;
  #order = 0;
  readonly #heap: Moment[] = [];
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = mulberry32(seed);
    // Small seeds start similarly.
    for (let skipped = 0; skipped < 8; skipped++) this.#random();
  }

  /** Milliseconds since 1970, as a clock shows them. */
  get now(): number {
    return Math.floor(this.#now);
  }

  /** Milliseconds since the start, for people. */
  get elapsed(): number {
    return this.#now - startOfTime;
  }

  /** In [0, 1). */
  fraction = (): number => this.#random();

  between(least: number, most: number): number {
    return least + this.#random() * (most - least);
  }

  whole(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[Math.floor(this.#random() * from.length)];
    if (picked === undefined) throw new Error("there is nothing to pick from");
    return picked;
  }

  /** Returns an independent source of randomness: what one draws does not affect another. */
  fork(): () => number {
    return mulberry32(Math.floor(this.#random() * 2 ** 32));
  }

  /** Runs work after this time; the returned function cancels it. */
  after(ms: number, work: () => void): () => void {
    const moment: Moment = { at: this.#now + Math.max(0, ms), order: this.#order++, work };
    this.#push(moment);
    return () => void (moment.work = null);
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Runs events until `done` returns true, or for this time; false when no events are left. */
  async run(done: () => boolean, ms = Infinity): Promise<boolean> {
    const end = this.#now + ms;
    await atRest();
    while (!done()) {
      const next = this.#pop(end);
      if (!next) {
        if (Number.isFinite(end)) this.#now = Math.max(this.#now, end);
        return false;
      }
      this.#now = next.at;
      next.work?.();
      await atRest();
    }
    return true;
  }

  #push(moment: Moment): void {
    const heap = this.#heap;
    let at = heap.push(moment) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (!above || isBefore(above, moment)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = moment;
  }

  /** Returns the next event that was not canceled, if it is not after the end. */
  #pop(end: number): Moment | null {
    for (;;) {
      const first = this.#heap[0];
      if (!first || (first.at > end && first.work)) return null;
      this.#removeFirst();
      if (first.work) return first;
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      const child = right && left && isBefore(right, left) ? right : left;
      if (!child || isBefore(last, child)) break;
      heap[at] = child;
      at = 2 * at + (child === right ? 2 : 1);
    }
    heap[at] = last;
  }
}

function isBefore(one: Moment, other: Moment): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/**
 * Waits until everything that needs only a turn has completed. A turn of the event loop, not only
 * of microtasks: unhandled rejections are reported between turns.
 */
function atRest(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

const linesKept = 60;

/** What happened, as a hash of everything and the last steps in words. */
class Trace {
  #one = 0xdeadbeef;
  #other = 0x41c6ce57;
  #steps = 0;
  readonly #last: string[] = [];

  /** Records one step. */
  note(elapsed: number, text: string): void {
    const line = `${elapsed.toFixed(3)} ${text}`;
    this.#steps++;
    for (let at = 0; at < line.length; at++) {
      const code = line.charCodeAt(at);
      this.#one = Math.imul(this.#one ^ code, 2654435761);
      this.#other = Math.imul(this.#other ^ code, 1597334677);
    }
    this.#last.push(line);
    if (this.#last.length > 2 * linesKept) this.#last.splice(0, linesKept);
  }

  get steps(): number {
    return this.#steps;
  }

  get hash(): string {
    const text = (half: number) => (half >>> 0).toString(16).padStart(8, "0");
    return text(this.#one) + text(this.#other);
  }

  get last(): readonly string[] {
    return this.#last.slice(-linesKept);
  }
}
