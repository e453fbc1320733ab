import type { JsonObject } from "../../base/json.ts";
import type { ResponseScanner } from "../../inference/upstream_response.ts";
import type { Units } from "../../pricing/units.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";

const overlapChars = 400;
/** The length of the sound in a verbose response. Quotes in a transcript itself are escaped. */
const durationField = /"duration"\s*:\s*"?([\d.eE+-]{1,320})(?=[^\d.eE+-])/;

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
    if (Number(seconds) > 0) this.#duration = Number(seconds);
    this.#rest = all.slice(-overlapChars);
  }

  get served() {
    return { model: null, tier: null };
  }

  get usages() {
    return this.#scanner.usages;
  }

  get units(): Units {
    let billed = 0;
    for (const usage of this.#scanner.usages) billed = Math.max(billed, secondsIn(usage));
    const audioSeconds = billed > 0 ? billed : this.#duration;
    return audioSeconds === null ? {} : { audioSeconds };
  }
}

/** The seconds that a report bills: OpenAI's, or Mistral's; zero where it has none. */
function secondsIn({ type, seconds, prompt_audio_seconds: heard }: JsonObject): number {
  const billed = type === "duration" && typeof seconds === "number" ? seconds : heard;
  return typeof billed === "number" ? billed : 0;
}
