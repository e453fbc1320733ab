import { createHash, timingSafeEqual } from "node:crypto";

/** Text that no log, error or JSON shows by accident: only `reveal` returns it. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself, for the one place that needs it. */
  reveal(): string {
    return this.#text;
  }

  /**
   * Compares in a time that depends neither on where two texts differ, nor on how long the secret
   * is.
   */
  is(text: string): boolean {
    return timingSafeEqual(digest(text), digest(this.#text));
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  /** What a console shows, Deno's or Node's. */
  [Symbol.for("Deno.customInspect")](): string {
    return "[secret]";
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[secret]";
  }
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
