import { readerStallMs } from "../../base/limits.ts";
import { TimedWait } from "../../base/timed_wait.ts";
import type { Clock } from "../../base/clock.ts";

interface PacedBodyOptions {
  clock: Clock;
  /** The request of the client that reads it. */
  request: Request;
  /** Ends waiting for the client. */
  signal: AbortSignal;
  /** The client has disconnected, or has stopped reading. Called once. */
  onDisconnect(): void;
}

/**
 * The body of a response that is written at its client's pace, so that memory stays bounded. A
 * client that takes nothing for two minutes counts as disconnected.
 */
export class PacedBody {
  readonly #options: PacedBodyOptions;
  readonly #stall: TimedWait<void>;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** The client waits for data. True at the start: the first read follows at once. */
  hasDemand = true;
  #resume = () => {};
  /** The client may still read what is sent. */
  isReadable = true;

  constructor(options: PacedBodyOptions) {
    this.#options = options;
    this.#stall = new TimedWait(options.clock);
  }

  /** Starts writing, and returns the body. `write` must not throw. */
  start(write: () => Promise<void>): ReadableStream<Uint8Array> {
    const { request, signal } = this.#options;
    // An aborted call ends also while its client does not read.
    signal.addEventListener("abort", () => this.#resume(), { once: true });
    let written = Promise.resolve();
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
        written = write().finally(() => this.#stall.end());
        // The client is gone already, and `cancel` may never be called.
        if (!request.signal.aborted) return;
        this.disconnect();
        controller.close();
      },
      pull: () => {
        this.hasDemand = true;
        this.#resume();
      },
      cancel: () => {
        this.disconnect();
        return written;
      },
    }, { highWaterMark: 0 });
  }

  /** Sends bytes, unless the client has disconnected. */
  send(bytes: Uint8Array): void {
    if (!this.isReadable || bytes.length === 0) return;
    this.hasDemand = false;
    this.#controller?.enqueue(bytes);
  }

  close(): void {
    if (this.isReadable) this.#controller?.close();
  }

  /** Breaks the connection off, so that its client knows that the response is not complete. */
  breakOff(reason: unknown): void {
    if (this.isReadable) this.#controller?.error(reason);
    this.isReadable = false;
  }

  /** Waits until the client reads or has disconnected, or the call is aborted. */
  async untilDemand(): Promise<void> {
    if (this.hasDemand || !this.isReadable || this.#options.signal.aborted) return;
    const demand = new Promise<void>((resolve) => (this.#resume = resolve));
    const waited = await this.#stall.wait(demand, readerStallMs);
    if (waited !== "timeout") return;
    this.breakOff(new Error("The client has stopped reading."));
    this.disconnect();
  }

  disconnect(): void {
    this.isReadable = false;
    this.#options.onDisconnect();
    this.#resume();
  }
}
