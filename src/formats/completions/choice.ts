import { isObject, type Json, type JsonObject, plainNumber, plainText } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { ChoiceShape } from "../openai/choice_shape.ts";
import { choiceIndex } from "../chat/choice_mender.ts";
import { promptsOf } from "./request.ts";

/**
 * A choice of a legacy completion: a text. With `echo` it begins with its prompt, which the model
 * did not write and the meter must not count.
 */
export function createCompletionChoice({ body }: ModelRequest): ChoiceShape {
  const skip = createEchoSkipper(body);
  function* writtenTexts({ index, text }: JsonObject): Generator<string> {
    if (typeof text === "string") yield skip(plainNumber(index), text);
  }
  return {
    object: "text_completion",
    chunkObject: "text_completion",
    normalizeChoice(choice, position) {
      if (!isObject(choice) || typeof choice.text !== "string") return null;
      const { index, finish_reason: reason } = choice;
      return {
        logprobs: null,
        ...choice,
        index: choiceIndex(index) ?? position,
        finish_reason: isReason(reason) ? reason : "stop",
      };
    },
    textsOf: writtenTexts,
    appendText: (choice, text) => ({ ...choice, text: plainText(choice.text) + text }),
    asChunks({ index = 0, text = "", finish_reason = "stop", ...rest }) {
      return [
        { index, text, ...rest, finish_reason: null },
        createDelta(plainNumber(index), null, plainText(finish_reason)),
      ];
    },
    createMender: () => ({ mend: mendDelta, noteToolCall: () => {} }),
    deltaTextsOf: writtenTexts,
    hasAnswer: ({ text }) => typeof text === "string" && text !== "",
    imagesOf: () => [],
    hasDelta: ({ text }) => text !== "",
    createDelta,
  };
}

/** Gives a choice's text without the prompt that `echo` puts before it, piece by piece. */
function createEchoSkipper(body: JsonObject): (index: number, text: string) => string {
  if (body.echo !== true) return (_, text) => text;
  const prompts = promptsOf(body);
  const perPrompt = Math.max(1, plainNumber(body.n ?? 1));
  const charsLeft = new Map<number, number>();
  return (index, text) => {
    const prompt = prompts[Math.floor(index / perPrompt)];
    // The text of token ids is not known: it is counted as output, where the upstream does not
    // count.
    const left = charsLeft.get(index) ?? (typeof prompt === "string" ? prompt.length : 0);
    charsLeft.set(index, Math.max(0, left - text.length));
    return text.slice(left);
  };
}

function createDelta(index: number, text: string | null, finishReason: string | null): JsonObject {
  return { text: text ?? "", index, logprobs: null, finish_reason: finishReason };
}

function mendDelta(choice: Json, position: number): JsonObject | null {
  if (!isObject(choice)) return null;
  const { index, text, finish_reason: reason } = choice;
  if (text !== undefined && text !== null && typeof text !== "string") return null;
  const number = choiceIndex(index) ?? position;
  if (index === number && typeof text === "string" && (reason === null || isReason(reason))) {
    return choice;
  }
  return {
    ...choice,
    index: number,
    text: text ?? "",
    finish_reason: isReason(reason) ? reason : null,
  };
}

/** Some servers send an empty string instead of null. */
function isReason(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}
