import type { TimeSlice } from "../base/time_slice.ts";
import { mediaTokens } from "../pricing/media_tokens.ts";
import { type CountTokens, sliceAt } from "../pricing/tokenizer.ts";
import type { Format, ModelRequest } from "./format.ts";

/** What a prompt contains besides text: its characters, and a bound on its tokens. */
export interface PromptMedia {
  chars: number;
  tokens: number;
}

/**
 * Bounds the tokens of images, sounds and files: by the model's own `bounds`, the maximum for each
 * type of part, else by what providers publish.
 */
export function boundMedia(
  format: Format,
  request: ModelRequest,
  bounds: Record<string, number>,
): PromptMedia {
  const media = { chars: 0, tokens: 0 };
  for (const { type, value, chars } of format.mediaParts(request)) {
    const own = Object.hasOwn(bounds, type) ? bounds[type] : undefined;
    media.chars += chars;
    media.tokens += own ?? mediaTokens(value, request.model);
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
  { media, count, slice, most, onYield }: {
    media: PromptMedia;
    count: CountTokens;
    slice: TimeSlice;
    most: number;
    /** Called after other requests have run; may throw, which ends the counting. */
    onYield?: () => void;
  },
): Promise<number> {
  let tokens = format.templateTokens(request) + media.tokens;
  if (request.bytes > countedAtOnceMax) await slice.yield();
  for (const text of format.promptTexts(request)) {
    for (let from = 0; from < text.length;) {
      if (tokens > most) return tokens;
      if (slice.expired) {
        await slice.yield();
        onYield?.();
      }
      const part = sliceAt(text, from);
      tokens += count(part);
      from += part.length;
    }
  }
  return tokens;
}
