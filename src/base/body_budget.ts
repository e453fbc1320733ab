import { overloaded } from "./errors.ts";

/** What one request's body holds. */
interface Share {
  bytes: number;
  ended: boolean;
  /** Reads no further. */
  stop: () => void;
}

/** The large bodies of the requests under way: what they hold in memory together has a bound. */
export class BodyBudget {
  #bytes = 0;
  readonly #shares = new Map<Request, Share>();
  readonly #bytesMax: number;
  readonly #refused: () => void;

  /** `refused` is told of each body that there was no room for. */
  constructor(bytesMax: number, refused: () => void) {
    this.#bytesMax = bytesMax;
    this.#refused = refused;
  }

  /**
   * Opens a request's share: the returned function takes room for so many bytes more. Both throw
   * 503 `overloaded` where none is left, and the latter also once the request has ended. Then
   * `stop` is called: whoever still reads the body holds it, and nobody would count that any more.
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

  /** Gives back what the request held, if anything. */
  free(request: Request): void {
    // Nearly always: small bodies are not in it.
    if (this.#shares.size > 0) this.keep(request)();
  }

  /**
   * Keeps the request's share beyond its handler's return: until the returned function is called.
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
