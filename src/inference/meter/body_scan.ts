import type { AdmittedCall } from "../call.ts";
import type { Format } from "../format.ts";
import type { ResponseScanner } from "../upstream_response.ts";
import type { UsageMeter } from "./usage_meter.ts";

/** A format that can read what is too large to be parsed. */
export type Scannable = Pick<Format, "createScanner">;

/** Adds the usage in a body to the call's meter as it passes. */
export class BodyScan {
  readonly #meter: UsageMeter;
  readonly #scanner: ResponseScanner;
  readonly #decoder = new TextDecoder();

  /** `spoken` is the format that the upstream speaks. */
  constructor({ format, attempt: { meter } }: AdmittedCall, spoken: Scannable = format) {
    this.#meter = meter;
    this.#scanner = spoken.createScanner();
  }

  push(bytes: Uint8Array): void {
    this.pushText(this.#decoder.decode(bytes, { stream: true }));
  }

  pushText(text: string): void {
    this.#scanner.push(text);
  }

  /** The body has ended, or will not be read further. */
  end(): void {
    const { usages, served, units, hasImage } = this.#scanner;
    this.#meter.addServed(served);
    if (hasImage) this.#meter.producedImage = true;
    if (units) this.#meter.units = units;
    for (const usage of usages) this.#meter.addUsage(usage);
  }
}
