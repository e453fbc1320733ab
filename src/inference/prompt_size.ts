import { badRequest } from "../base/errors.ts";
import type { TimeSlice } from "../base/time_slice.ts";
import { type CountTokens, sliceAt } from "../pricing/tokenizer.ts";
import type { Format, ModelRequest } from "./format.ts";

/** What a prompt contains besides text: its characters, and a bound on its tokens. */
export interface PromptMedia {
  chars: number;
  tokens: number;
}

/**
 * Bounds the tokens of images, sounds and files by `mediaTokens`, the model's maximum for each type
 * of part. Throws 400 for a type that has none.
 */
export function boundMedia(
  format: Format,
  request: ModelRequest,
  mediaTokens: Record<string, number>,
): PromptMedia {
  const media = { chars: 0, tokens: 0 };
  for (const { type, param, chars } of format.mediaParts(request)) {
    const bound = Object.hasOwn(mediaTokens, type) ? mediaTokens[type] : undefined;
    if (bound === undefined) {
      throw badRequest(
        param,
        `Content parts of type '${type.slice(0, 64)}' have no token bound for model ` +
          `'${request.model}', so they cannot be priced. Set 'mediaTokens' in the model's price.`,
        "unsupported_content_part",
      );
    }
    media.chars += chars;
    media.tokens += bound;
  }
  return media;
}

/**
 * A bound on the prompt's tokens that needs no counting: no byte-level tokenizer makes more tokens
 * than there are bytes, and the JSON around the text is longer than what a chat template adds.
 */
export function boundByBytes(request: ModelRequest, media: PromptMedia): number {
  return Math.max(0, request.bytes - media.chars) + media.tokens;
}

/** A longer body yields once before it is counted, in bytes. */
const countedAtOnceMax = 16 * 1024;

/**
 * Counts the prompt's tokens: its text, what a template adds, and the media's bound. Stops once
 * there are more than `most`. Yields to other requests.
 */
export async function countPrompt(
  format: Format,
  request: ModelRequest,
  { media, count, slice, most }: {
    media: PromptMedia;
    count: CountTokens;
    slice: TimeSlice;
    most: number;
  },
): Promise<number> {
  let tokens = format.templateTokens(request) + media.tokens;
  if (request.bytes > countedAtOnceMax) await slice.yield();
  for (const text of format.promptTexts(request)) {
    for (let from = 0; from < text.length;) {
      if (tokens > most) return tokens;
      if (slice.expired) await slice.yield();
      const part = sliceAt(text, from);
      tokens += count(part);
      from += part.length;
    }
  }
  return tokens;
}
