import type { ImageSize } from "../../pricing/image_size.ts";
import { isKnownMaker, madeImageTokens, sizeOfDataUrl } from "../../pricing/made_image_tokens.ts";

/** The images that a model has made in one response, for our own count of its tokens. */
export class MadeImages {
  /** Sizes by what tells images apart; null where a header has none. */
  readonly #sizes = new Map<string, ImageSize | null>();

  /** Adds an image by its URL. Some servers send one twice: it counts once. */
  add(url: string): void {
    const mark = `${url.length} ${url.slice(-64)}`;
    if (!this.#sizes.has(mark)) this.#sizes.set(mark, sizeOfDataUrl(url));
  }

  /** The tokens of all of them, made by the first of these models that is known. */
  tokens(models: readonly (string | null | undefined)[]): number {
    const model = models.find((name) => name && isKnownMaker(name)) ?? "";
    let tokens = 0;
    for (const size of this.#sizes.values()) tokens += madeImageTokens(model, size);
    return tokens;
  }
}
