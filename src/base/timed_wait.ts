import type { Clock } from "./clock.ts";

/**
 * Waits for one promise at a time, with a timeout. One timer serves all waits and is restarted when
 * it fires too early: a timer for each piece of a stream would cost as much as reading the piece.
 */
export class TimedWait<T> {
  readonly #clock: Clock;
  #waiter: PromiseWithResolvers<T | "timeout"> | null = null;
  /** When the wait ends, by the clock's `elapsed`. */
  #until = 0;
  #ringsAt = Infinity;
  #stop: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The result, or "timeout" when it takes longer than `ms`. One wait at a time. */
  wait(work: Promise<T>, ms: number): Promise<T | "timeout"> {
    const waiter = Promise.withResolvers<T | "timeout">();
    this.#waiter = waiter;
    this.#until = this.#clock.elapsed() + ms;
    if (this.#until < this.#ringsAt) this.#ringAt(this.#until, ms);
    work.then(this.#came, this.#failed);
    return waiter.promise;
  }

  /** Cancels the timer after the last wait. */
  end(): void {
    this.#stop?.();
    this.#stop = null;
  }

  // A promise that was waited for twice settles both times; the second finds no waiter.
  readonly #came = (value: T): void => this.#take()?.resolve(value);
  readonly #failed = (error: unknown): void => this.#take()?.reject(error);

  #take(): PromiseWithResolvers<T | "timeout"> | null {
    const waiter = this.#waiter;
    this.#waiter = null;
    return waiter;
  }

  #ringAt(at: number, ms: number): void {
    this.#stop?.();
    this.#ringsAt = at;
    this.#stop = this.#clock.after(ms, this.#ring);
  }

  readonly #ring = (): void => {
    this.#stop = null;
    this.#ringsAt = Infinity;
    if (!this.#waiter) return;
    const left = this.#until - this.#clock.elapsed();
    if (left > 0) this.#ringAt(this.#until, left);
    else this.#take()?.resolve("timeout");
  };
}
