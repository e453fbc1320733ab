import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import type { ChoiceShape } from "../openai/choice_shape.ts";
import { ChatChoiceMender, mendWholeChoice } from "./choice_mender.ts";

/** Where OpenAI's clients look for thinking. */
const thoughtsField = "reasoning_content";

/** A choice of a chat completion: a message, or a delta of one. */
export const chatChoice: ChoiceShape = {
  object: "chat.completion",
  chunkObject: "chat.completion.chunk",
  normalizeChoice: (choice, position, options) =>
    mendWholeChoice(choice, position, { ...options, thoughtsField }),
  textsOf: ({ message }) => outputTexts(message),
  appendText(choice, text) {
    if (!isObject(choice.message)) return choice;
    const { content } = choice.message;
    return { ...choice, message: { ...choice.message, content: plainText(content ?? "") + text } };
  },
  asChunks({ message, index = 0, finish_reason, ...rest }) {
    const delta = isObject(message) ? withIndexes(message) : {};
    return [
      { index, ...rest, delta, finish_reason: null },
      { index, delta: {}, finish_reason: finish_reason ?? "stop" },
    ];
  },
  createMender: (options) => new ChatChoiceMender({ ...options, thoughtsField }),
  deltaTextsOf: ({ delta }) => outputTexts(delta),
  hasAnswer: ({ message }) => isObject(message) && hasAnswer(message),
  imagesOf: ({ message, delta }) => imagesOf(delta ?? message),
  hasDelta: ({ delta }) => isObject(delta) && Object.keys(delta).length > 0,
  createDelta: (index, text, finishReason) => ({
    index,
    delta: text === null ? {} : { content: text },
    logprobs: null,
    finish_reason: finishReason,
  }),
};

const noImages: readonly string[] = [];

/** Images as OpenRouter returns them, and as parts of the content; "" for one without a URL. */
function imagesOf(message: Json | undefined): readonly string[] {
  if (!isObject(message)) return noImages;
  const { images, content } = message;
  if (!Array.isArray(images) && !Array.isArray(content)) return noImages;
  const parts = Array.isArray(content) ? content.filter(isImagePart) : [];
  return [...(Array.isArray(images) ? images : []), ...parts].map(urlOfImage);
}

function isImagePart(part: Json): boolean {
  return isObject(part) && typeof part.type === "string" && part.type.includes("image");
}

function urlOfImage(image: Json): string {
  const { image_url: holder = null, url = holder } = isObject(image) ? image : { url: image };
  const found = isObject(url) ? url.url : url;
  return typeof found === "string" ? found : "";
}

function hasAnswer(message: JsonObject): boolean {
  const { content, refusal, audio, function_call: call, tool_calls: calls } = message;
  if (typeof refusal === "string" && refusal !== "") return false;
  const texts = typeof content === "string" ? [content] : Array.isArray(content) ? content : [];
  const hasText = texts.some((part) =>
    typeof part === "string" ? part !== "" : isObject(part) && Boolean(part.text)
  );
  return hasText || isObject(audio) || isObject(call) || imagesOf(message).length > 0 ||
    (Array.isArray(calls) && calls.length > 0);
}

/** Tool calls of a delta carry an index; those of a message do not. */
function withIndexes(message: JsonObject): JsonObject {
  const { tool_calls } = message;
  if (!Array.isArray(tool_calls)) return message;
  const indexed = tool_calls.map((call, index) => (isObject(call) ? { index, ...call } : call));
  return { ...message, tool_calls: indexed };
}

/** Everything a model wrote in a message or a delta: text, reasoning, refusals, tool calls. */
export function* outputTexts(message: Json | undefined): Generator<string> {
  if (!isObject(message)) return;
  // Some servers send the same reasoning under both names.
  const { reasoning_content, reasoning, reasoning_details: details, audio } = message;
  const isNamed = typeof reasoning_content === "string" && reasoning_content !== "";
  yield* partTexts(message.content);
  yield* partTexts(isNamed ? reasoning_content : reasoning);
  // OpenRouter has the same reasoning in its details, or there alone.
  if (!isNamed && !reasoning && Array.isArray(details)) yield* detailTexts(details);
  yield* partTexts(message.refusal);
  if (isObject(audio)) yield* partTexts(audio.transcript);
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [message.function_call];
  for (const call of calls) if (isObject(call)) yield* callTexts(call);
}

/** A text, or the texts of content parts. Mistral's reasoning is parts within a part. */
function* partTexts(value: Json | undefined): Generator<string> {
  if (typeof value === "string") yield value;
  if (!Array.isArray(value)) return;
  for (const part of value) {
    if (isObject(part)) yield* partTexts(part.type === "thinking" ? part.thinking : part.text);
  }
}

/** The texts of reasoning's details; those that are encrypted say nothing about tokens. */
function* detailTexts(details: readonly Json[]): Generator<string> {
  for (const detail of details) {
    if (!isObject(detail)) continue;
    for (const text of [detail.text, detail.summary]) if (typeof text === "string") yield text;
  }
}

function* callTexts(call: JsonObject): Generator<string> {
  const { function: called, custom } = call;
  const written = isObject(called) ? called : isObject(custom) ? custom : call;
  for (const field of ["name", "arguments", "input"]) {
    const value = written[field];
    if (typeof value === "string") yield value;
  }
}
