import { isObject, type JsonObject, plainText } from "../../base/json.ts";
import { earlierSoundType } from "../../pricing/media_tokens.ts";
import type { MediaPart, ModelRequest } from "../../inference/model_request.ts";
import { textsIn } from "../openai/texts_in.ts";

/** Content parts that are text, whose bytes bound their tokens. */
export const textParts: ReadonlySet<unknown> = new Set<unknown>([
  "text",
  "refusal",
  "input_text",
  "output_text",
  "thinking",
  "redacted_thinking",
]);

/** Tokens that a template adds to each message, and to open the response. */
const perMessage = 4;
const perRequest = 3;

/** Tokens that a chat template adds to the messages. */
export function templateTokens({ body }: ModelRequest): number {
  return perRequest + perMessage * messagesOf(body).length;
}

/** Images, sounds and files of the messages, and sounds of earlier responses. */
export function* mediaParts({ body }: ModelRequest): Generator<MediaPart> {
  for (const [index, { content, audio }] of messagesOf(body).entries()) {
    if (isObject(audio)) {
      const value = { type: earlierSoundType };
      yield { type: "audio", param: `messages.${index}.audio`, value, chars: 0 };
    }
    for (const part of Array.isArray(content) ? content : []) {
      if (!isObject(part) || textParts.has(part.type)) continue;
      // Only its strings, which are never longer than as received: a number may be written longer.
      let chars = 0;
      for (const text of textsIn(part)) chars += text.length;
      yield { type: plainText(part.type), param: `messages.${index}.content`, value: part, chars };
    }
  }
}

/** Text of the messages, names, tool calls, tool definitions and other fields a model reads. */
export function* promptTexts({ body }: ModelRequest): Generator<string> {
  for (const message of messagesOf(body)) {
    const { content, role: _role, ...rest } = message;
    if (typeof content === "string") yield content;
    for (const part of Array.isArray(content) ? content : []) {
      if (!isObject(part)) continue;
      const { type, ...fields } = part;
      if (textParts.has(type)) yield* textsIn(fields);
    }
    yield* textsIn(rest);
  }
  for (const [name, value] of Object.entries(body)) {
    const mayBePrompt = typeof value === "string" || isObject(value) || Array.isArray(value);
    if (mayBePrompt && !outsidePrompt.has(name)) yield JSON.stringify(value);
  }
}

/** Fields that no model reads; messages are counted on their own. Tools and documents count. */
const outsidePrompt = new Set(
  ("messages model user stream_options metadata stop logit_bias reasoning_effort reasoning thinking " +
    "service_tier modalities verbosity safety_identifier prompt_cache_key prompt_cache_retention " +
    "prompt_cache_options google").split(" "),
);

/** The messages of a validated body. */
function messagesOf({ messages }: JsonObject): JsonObject[] {
  return Array.isArray(messages) ? messages.filter(isObject) : [];
}
