import type { TimeSlice } from "../../base/time_slice.ts";
import { contextWindowDefault, hasKnownSize, mediaTokens } from "../../pricing/media_tokens.ts";
import { createMediaWork } from "../../pricing/media_work.ts";
import type { ModelTerms } from "../../pricing/terms.ts";
import { type CountTokens, sliceAt } from "../../pricing/tokenizer.ts";
import type { Format } from "../format.ts";
import type { ModelRequest } from "../model_request.ts";

/** The parts of a prompt besides text. */
export interface PromptMedia {
  chars: number;
  /** A bound on the tokens of what has a known size, and the usual tokens of the rest. */
  tokens: number;
  /** Tokens that content of unknown size may have beyond the usual number. */
  unknown?: number;
  /** Tokens that the provider may add to the prompt: part of every bound, and of no estimate. */
  added?: number;
}

/**
 * The fewest tokens that a file at an address usually has. A balance must pay for this many, and
 * they are charged where no usage is reported.
 */
const usualFileTokens = 16_000;

/**
 * Bounds the tokens of images, sounds and files: by the model's own `mediaTokens`, the maximum for
 * each type of part, else by what providers publish. Content of unknown size, as tools at the
 * provider read it, can fill the context window, but only once, since no prompt is larger.
 */
export function boundMedia(
  format: Format,
  request: ModelRequest,
  terms: Pick<ModelTerms, "mediaTokens" | "contextWindow">,
): PromptMedia {
  const added = format.addedTokens?.(request) ?? 0;
  const media = { chars: 0, tokens: 0, unknown: 0, added };
  const contextWindow = terms.contextWindow ?? contextWindowDefault;
  const context = { contextWindow, work: createMediaWork() };
  let filled = 0;
  for (const { type, value, chars } of format.mediaParts(request)) {
    const own = Object.hasOwn(terms.mediaTokens, type) ? terms.mediaTokens[type] : undefined;
    media.chars += chars;
    if (own === undefined && !hasKnownSize(value)) {
      filled += usualFileTokens;
      media.unknown = Math.max(0, contextWindow - filled);
    } else {
      media.tokens += own ?? mediaTokens(value, request.model, context);
    }
  }
  if (format.tools?.readMore(request)) media.unknown = contextWindow;
  media.tokens += Math.min(filled, contextWindow) + (request.fileTokens ?? 0);
  return media;
}

/** Whether a prompt has more than text, whose tokens follow from its bytes. */
export function hasMedia({ chars, tokens, unknown = 0 }: PromptMedia): boolean {
  return chars > 0 || tokens > 0 || unknown > 0;
}

/**
 * A bound on the prompt's tokens that needs no counting: no byte-level tokenizer makes more tokens
 * than there are bytes, and the JSON around the text is longer than what a chat template adds.
 */
export function boundByBytes(request: ModelRequest, media: PromptMedia): number {
  return Math.max(0, request.bytes - media.chars) + media.tokens + (media.added ?? 0);
}

/** Characters that are searched before other requests may run. */
const searchedAtOnce = 64 * 1024;
/** The most bytes that a token has. */
const tokenBytesMax = 128;

/**
 * A lower bound on the tokens of texts, in place of counting them: no token joins two words that
 * begin with a letter or digit of ASCII after a space. Stops once there are more than `most`, and
 * yields to other requests. Returns also the characters that were searched.
 */
export async function leastTokens(
  texts: Iterable<string>,
  { slice, most, onYield }: {
    slice: TimeSlice;
    most: number;
    /** Called after other requests have run; may throw, which ends the search. */
    onYield?: () => void;
  },
): Promise<{ tokens: number; chars: number }> {
  let [tokens, chars] = [0, 0];
  for (const text of texts) {
    const byLength = Math.floor(text.length / tokenBytesMax);
    let words = 0;
    for (let from = 0; from < text.length; from += searchedAtOnce) {
      if (tokens + Math.max(words, byLength) > most) break;
      if (slice.expired) {
        await slice.yield();
        onYield?.();
      }
      const end = Math.min(text.length, from + searchedAtOnce);
      words += countWords(text, from, end);
      chars += end - from;
    }
    tokens += Math.max(words, byLength);
    if (tokens > most) break;
  }
  return { tokens, chars };
}

/** The fewest tokens that short texts can have, counted without a pause. */
export function leastTokensNow(texts: Iterable<string>): number {
  let tokens = 0;
  for (const text of texts) {
    const byLength = Math.floor(text.length / tokenBytesMax);
    tokens += Math.max(countWords(text, 0, text.length), byLength);
  }
  return tokens;
}

/** Words of a part of a text that begin with a letter or digit after a space, or at its start. */
function countWords(text: string, from: number, end: number): number {
  let words = 0;
  let afterSpace = from === 0 || text.charCodeAt(from - 1) <= 32;
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (afterSpace && isLetterOrDigit(code)) words++;
    afterSpace = code <= 32;
  }
  return words;
}

function isLetterOrDigit(code: number): boolean {
  const small = code | 0x20;
  return (small >= 0x61 && small <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/** The size of a body, in bytes, up to which it is counted without a pause. */
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
