import type { ResponseScanner } from "../../inference/upstream_response.ts";
import type { Units } from "../../pricing/units.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";

/** Longer than any name that is searched for, with its value. */
const overlapChars = 64;
/** Matches the texts that begin an image, end one in a stream, or name a size or a quality. */
const marks =
  /"(b64_json|url)"\s*:\s*"|"type"\s*:\s*"image_\w{1,16}\.(completed)"|"(size|quality)"\s*:\s*"([\w-]{1,24})"/g;

/**
 * Reads usage, and counts the images of a response as it passes. A text that a model wrote cannot
 * be taken for a field: quotes within it are escaped.
 */
export class ImageScanner implements ResponseScanner {
  readonly #scanner = new OpenAiScanner();
  readonly #counts = new Map<string, number>();
  readonly #named = new Map<string, string>();
  #rest = "";

  push(text: string): void {
    this.#scanner.push(text);
    const all = this.#rest + text;
    let read = 0;
    for (const match of all.matchAll(marks)) {
      const [found, field, completed, name, value] = match;
      read = match.index + found.length;
      const counted = field ?? completed;
      if (counted) this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
      if (name && value && !this.#named.has(name)) this.#named.set(name, value);
    }
    this.#rest = all.slice(Math.max(read, all.length - overlapChars));
  }

  get served() {
    return { model: null, tier: this.#scanner.served.tier };
  }

  get usages() {
    return this.#scanner.usages;
  }

  get units(): Units {
    const of = (name: string) => this.#counts.get(name);
    const count = of("completed") ?? Math.max(of("b64_json") ?? 0, of("url") ?? 0);
    const quality = this.#named.get("quality") ?? null;
    return { images: { count, size: this.#named.get("size") ?? null, quality } };
  }
}
