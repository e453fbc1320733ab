import { isObject } from "../../base/json.ts";
import type { ResponseScanner } from "../../inference/format.ts";
import type { Units } from "../../pricing/units.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";

const overlapChars = 48;
/** The length of the sound in a verbose response. Quotes in a transcript itself are escaped. */
const durationField = /"duration"\s*:\s*"?(\d{1,7}(?:\.\d{1,20})?)(?=[^\d.])/;

/** Reads the usage of a transcript, and the length of its sound, as it passes. */
export class TranscriptScanner implements ResponseScanner {
  readonly #scanner = new OpenAiScanner();
  #duration: number | null = null;
  #rest = "";

  push(text: string): void {
    this.#scanner.push(text);
    if (this.#duration !== null) return;
    const all = this.#rest + text;
    const [, seconds] = durationField.exec(all) ?? [];
    if (seconds !== undefined) this.#duration = Number(seconds);
    this.#rest = all.slice(-overlapChars);
  }

  get served() {
    return { model: null, tier: null };
  }

  get usages() {
    return this.#scanner.usages;
  }

  get units(): Units {
    const billed = this.usages.findLast((usage) => isObject(usage) && usage.type === "duration");
    const seconds = typeof billed?.seconds === "number" ? billed.seconds : this.#duration;
    return seconds === null ? {} : { audioSeconds: seconds };
  }
}
