/** What one response holds of a budget of memory. */
export interface MemoryShare {
  /** Reserves this many bytes in total. Returns false where they are not left. */
  reserve(bytes: number): boolean;
  /** Gives everything back. */
  release(): void;
}

/** Bytes of a response that no budget counts: most are smaller. */
export const unsharedBytes = 256 * 1024;

/** Bounds the memory that responses hold together. What gets no share must not be kept. */
export class MemoryBudget {
  #bytes = 0;
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** A share without any bytes yet. */
  share(): MemoryShare {
    let reserved = 0;
    return {
      reserve: (bytes) => {
        const more = bytes - reserved;
        if (more <= 0) return true;
        if (this.#bytes + more > this.#bytesMax) return false;
        this.#bytes += more;
        reserved = bytes;
        return true;
      },
      release: () => {
        this.#bytes -= reserved;
        reserved = 0;
      },
    };
  }
}
