import { overloaded } from "./errors.ts";

/** The share of one request's body. */
interface Share {
  bytes: number;
  ended: boolean;
  /** Stops reading. */
  stop: () => void;
}

/** Bounds the memory that large request bodies hold together. */
export class BodyBudget {
  #bytes = 0;
  readonly #shares = new Map<Request, Share>();
  readonly #bytesMax: number;
  readonly #refused: () => void;

  /** `refused` is called for each body that does not fit. */
  constructor(bytesMax: number, refused: () => void) {
    this.#bytesMax = bytesMax;
    this.#refused = refused;
  }

  /**
   * Opens a request's share. The returned function reserves more bytes. Both throw 503 `overloaded`
   * when the budget is used up; the function also once the request has ended. `stop` is then
   * called, since bytes that are still read would no longer be counted.
   */
  open(request: Request, stop: () => void): (bytes: number) => void {
    if (this.#bytes >= this.#bytesMax) this.#refuse();
    const share = { bytes: 0, ended: false, stop };
    this.#shares.set(request, share);
    return (bytes) => {
      if (share.ended) throw overloaded();
      if (this.#bytes + bytes > this.#bytesMax) this.#refuse();
      this.#bytes += bytes;
      share.bytes += bytes;
    };
  }

  /** Releases the request's share, if any. */
  free(request: Request): void {
    // Small bodies, which are most, have no share.
    if (this.#shares.size > 0) this.keep(request)();
  }

  /**
   * Keeps the share after the handler returns, until the returned function is called.
   */
  keep(request: Request): () => void {
    const share = this.#shares.get(request);
    this.#shares.delete(request);
    return () => {
      if (!share || share.ended) return;
      share.ended = true;
      this.#bytes -= share.bytes;
      share.stop();
    };
  }

  #refuse(): never {
    this.#refused();
    throw overloaded();
  }
}
