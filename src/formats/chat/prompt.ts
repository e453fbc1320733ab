import { badRequest } from "../../base/errors.ts";
import { isObject } from "../../base/json.ts";
import type { ChatRequest } from "./request.ts";
import type { TimeSlice } from "../../base/time_slice.ts";
import { type CountTokens, sliceAt } from "../../pricing/tokenizer.ts";

/** Content parts that are text, whose bytes bound their tokens. */
const textParts = new Set([
  "text",
  "refusal",
  "input_text",
  "output_text",
  "thinking",
  "redacted_thinking",
]);

/** What stands in a chat besides text: its bytes, which say nothing of its tokens, and its bound. */
export interface PromptMedia {
  bytes: number;
  tokens: number;
}

/**
 * Bounds the tokens of images, sounds and files by the model's own maximum for each type of part.
 * Throws 400 for a type that has none.
 */
export function boundMedia(chat: ChatRequest, mediaTokens: Record<string, number>): PromptMedia {
  const media = { bytes: 0, tokens: 0 };
  for (const [index, { content }] of chat.messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      if (textParts.has(part.type)) continue;
      const bound = Object.hasOwn(mediaTokens, part.type) ? mediaTokens[part.type] : undefined;
      if (bound === undefined) {
        throw badRequest(
          `messages.${index}.content`,
          `Content parts of type '${part.type.slice(0, 64)}' have no token bound for model ` +
            `'${chat.model}' here, so they cannot be priced: its price in the project has to give ` +
            "'mediaTokens' for them.",
          "unsupported_content_part",
        );
      }
      // Only its texts, which are never longer than they came: a number may be written longer.
      for (const text of textsIn(part)) media.bytes += text.length;
      media.tokens += bound;
    }
  }
  return media;
}

/**
 * A bound on the prompt's tokens that costs nothing: no byte-level tokenizer makes more tokens than
 * there are bytes, and the JSON around the text is more than what a chat template adds.
 */
export function boundByBytes(chat: ChatRequest, media: PromptMedia): number {
  return Math.max(0, chat.bytes - media.bytes) + media.tokens;
}

/** Tokens that a template adds to each message, and to open the answer. */
const perMessage = 4;
const perChat = 3;
/** A longer chat waits for its turn to be counted, in bytes. */
const promptlyMax = 16 * 1024;

/**
 * Counts the prompt: text, names, tool calls and tool definitions, with the media's bound. Stops
 * once there are more than `most`. Lets other requests run in between.
 */
export async function countPrompt(
  chat: ChatRequest,
  media: PromptMedia,
  { count, stretch, most }: { count: CountTokens; stretch: TimeSlice; most: number },
): Promise<number> {
  let tokens = perChat + perMessage * chat.messages.length + media.tokens;
  if (chat.bytes > promptlyMax) await stretch.yield();
  for (const text of promptTexts(chat)) {
    for (let from = 0; from < text.length;) {
      if (tokens > most) return tokens;
      if (stretch.expired) await stretch.yield();
      const slice = sliceAt(text, from);
      tokens += count(slice);
      from += slice.length;
    }
  }
  return tokens;
}

function* promptTexts(chat: ChatRequest): Generator<string> {
  for (const message of chat.messages) {
    const { content, role: _role, ...rest } = message;
    if (typeof content === "string") yield content;
    for (const part of Array.isArray(content) ? content : []) {
      const { type, ...fields } = part;
      if (textParts.has(type)) yield* textsIn(fields);
    }
    yield* textsIn(rest);
  }
  for (const [name, value] of Object.entries(chat.body)) {
    const isPart = typeof value === "string" || isObject(value) || Array.isArray(value);
    if (isPart && !outsidePrompt.has(name)) yield JSON.stringify(value);
  }
}

/** What is never read by a model; messages are counted by themselves. Else: tools, documents, … */
const outsidePrompt = new Set(
  ("messages model user stream_options metadata stop logit_bias reasoning_effort reasoning thinking " +
    "service_tier modalities verbosity safety_identifier prompt_cache_key").split(" "),
);

/** Every text inside a value, as a model would read it. */
function* textsIn(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (Array.isArray(value)) { for (const item of value) yield* textsIn(item); }
  else if (isObject(value)) yield* textsIn(Object.values(value));
}

/** Room for a tokenizer that is not ours: a tenth more, and a few tokens of template. */
export function withTokenizerMargin(tokens: number): number {
  return Math.ceil(tokens * 1.1) + 16;
}
