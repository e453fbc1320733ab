import { beyondOurBounds } from "../../upstreams/errors.ts";

/** The most that a stream's translator keeps of texts that it cannot pass on yet, in characters. */
const heldCharsMax = 4 * 1024 * 1024;

/** Counts what a translator keeps of the texts of one stream. */
export class HeldText {
  #chars = 0;

  /** Adds to what is kept. Throws 502 when that is more than memory allows. */
  add(chars: number): void {
    this.#chars += chars;
    if (this.#chars > heldCharsMax) throw beyondOurBounds("a stream whose parts wait for its end");
  }
}
