import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import type { MediaPart, ModelRequest } from "../../inference/model_request.ts";
import { textsIn } from "../openai/texts_in.ts";
import { words } from "../openai/known_fields.ts";
import { inputItems, isMediaPart, partsOf } from "./input_items.ts";

/** Tokens that a template adds to each item, and to open the response. */
const perItem = 4;
const perRequest = 3;

/** Tokens that a template adds to the items of a request for a response. */
export function responsesTemplateTokens({ body }: ModelRequest): number {
  const { input } = body;
  return perRequest + perItem * (Array.isArray(input) ? input.length : 1);
}

/** Images, sounds and files of the items, those of tools' outputs and earlier images included. */
export function* responsesMediaParts({ body }: ModelRequest): Generator<MediaPart> {
  for (const [index, item] of inputItems(body).entries()) {
    for (const { field, part } of partsOf(item)) {
      if (!isMediaPart(part)) continue;
      const isScreenshot = part.type === "computer_screenshot";
      const value = isScreenshot ? { ...part, type: "input_image" } : part;
      const type = plainText(value.type);
      yield { type, param: `input.${index}.${field}`, value, chars: charsIn(part) };
    }
    const { type, result } = item;
    if (type !== "image_generation_call" || typeof result !== "string") continue;
    const value = { type: "input_image", data: result };
    yield { type: value.type, param: `input.${index}.result`, value, chars: result.length };
  }
}

/**
 * Counts the characters of a part's strings, which are never longer than as received. A number may
 * be written longer, so numbers do not count.
 */
function charsIn(part: JsonObject): number {
  let chars = 0;
  for (const text of textsIn(part)) chars += text.length;
  return chars;
}

/** Members of items and parts that no model reads. */
const silentMembers = new Set(
  words("type role id status call_id phase annotations logprobs item_id container_id"),
);

/** Texts of the items, instructions, tools and other fields that a model reads. */
export function* responsesPromptTexts({ body }: ModelRequest): Generator<string> {
  if (typeof body.input === "string") yield body.input;
  for (const item of inputItems(body)) yield* itemTexts(item);
  for (const [name, value] of Object.entries(body)) {
    if (outsidePrompt.has(name)) continue;
    if (typeof value === "string") yield value;
    else if (isObject(value) || Array.isArray(value)) yield JSON.stringify(value);
  }
}

/** Fields that no model reads; items are counted on their own. */
const outsidePrompt = new Set(words(
  "input model user stream stream_options metadata include store background previous_response_id",
  "conversation reasoning service_tier safety_identifier prompt_cache_key prompt_cache_retention",
  "prompt_cache_options truncation client_metadata tool_choice context_management moderation",
  "access_programs image stop",
));

function* itemTexts(item: JsonObject): Generator<string> {
  const isImage = item.type === "image_generation_call";
  for (const [name, value] of Object.entries(item)) {
    if (silentMembers.has(name) || (isImage && name === "result")) continue;
    if (name !== "content" && name !== "output") yield* textsIn(value);
    else if (Array.isArray(value)) { for (const part of value) yield* partTexts(part); }
    else yield* partTexts(value);
  }
}

function* partTexts(part: Json): Generator<string> {
  if (!isObject(part)) return yield* textsIn(part);
  if (isMediaPart(part)) return;
  for (const [name, value] of Object.entries(part)) {
    if (!silentMembers.has(name)) yield* textsIn(value);
  }
}
