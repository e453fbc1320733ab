import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json, type JsonObject, nestsDeeper, parseJson } from "../../base/json.ts";
import { jsonDepthMax } from "../../base/limits.ts";
import type { ApiError } from "../../base/errors.ts";
import type { Secret } from "../../base/secret.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import { type BalanceNotice, noticeFor } from "../../inference/notice.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type {
  CompleteResponse,
  EventAssembler,
  ResponseHead,
} from "../../inference/upstream_response.ts";
import { areErrors, readUpstreamError, redactKey } from "../../upstreams/error_body.ts";
import {
  beyondOurBounds,
  errorInBody,
  invalidUpstreamResponse,
  upstreamDisconnected,
} from "../../upstreams/errors.ts";
import { ChunkAssembler } from "./assemble.ts";
import { errorOfEvent, parsedChunk } from "./stream_error.ts";
import type { ChoiceShape } from "./choice_shape.ts";
import { isEndedByModel } from "./choice_end.ts";
import { normalizeHead } from "./head.ts";
import { servedBy, usageIn, withoutUsage } from "./usage.ts";

interface ReadOptions {
  request: ModelRequest;
  head: ResponseHead;
  apiKey: Secret | null;
}

/**
 * Reads a response with `choices`, and adds what clients rely on where an upstream leaves it out.
 * Throws 502 for anything else: HTML, a truncated body, an error with status 200, choices without
 * messages, or nesting too deep to be written again.
 */
export function readChoices(
  bytes: Uint8Array,
  options: ReadOptions,
  shape: ChoiceShape,
): CompleteResponse {
  return completeFrom(readChoicesBody(bytes, options.apiKey).body, options, shape);
}

/** Reads the chunks of a stream as a whole response, as `readChoices` does. */
export class OpenAiAssembler implements EventAssembler {
  readonly usages: JsonObject[] = [];
  readonly #chunks: ChunkAssembler;
  readonly #options: ReadOptions;
  readonly #shape: ChoiceShape;
  #isDone = false;

  constructor(options: ReadOptions, shape: ChoiceShape) {
    this.#options = options;
    this.#shape = shape;
    this.#chunks = new ChunkAssembler(shape, options);
  }

  add(event: EventSourceMessage, { usageOnly }: { usageOnly: boolean }): void {
    const error = errorOfEvent(event, this.#options.apiKey);
    if (error) throw error;
    if (event.data === "[DONE]") this.#isDone = true;
    const chunk = parsedChunk(event.data);
    if (!isObject(chunk)) return;
    const usage = usageIn(chunk);
    if (usage) this.usages.push(usage);
    if (!usageOnly) this.#chunks.add(chunk);
  }

  *texts(): Generator<string> {
    const { choices } = this.#chunks.whole();
    if (Array.isArray(choices)) yield* textsOf(choices.filter(isObject), this.#shape);
  }

  complete(): CompleteResponse {
    if (!this.#isDone && !this.#chunks.isFinished) {
      throw upstreamDisconnected("a stream without its end");
    }
    const complete = completeFrom(this.#chunks.whole(), this.#options, this.#shape);
    return { ...complete, usages: this.usages };
  }
}

function completeFrom(
  body: JsonObject,
  options: ReadOptions,
  shape: ChoiceShape,
): CompleteResponse {
  const choices = numbered(
    choicesOf(body).map((choice, position) => {
      const whole = shape.normalizeChoice(choice, position, options);
      if (!whole) throw invalidUpstreamResponse("a choice without a message");
      return "usage" in whole ? withoutUsage(whole) : whole;
    }),
  );
  const whole = {
    ...withoutUsage(body),
    ...normalizeHead(body, { ...options.head, object: shape.object }),
  };
  return {
    served: servedBy(body),
    texts: textsOf(choices, shape),
    images: choices.flatMap(shape.imagesOf),
    isAnswer: () => isAnswer(body.choices, shape),
    usages: [usageIn(body) ?? []].flat(),
    write({ usage, notice, balance }) {
      const shown = withNotice(choices, { notice, balance, shape });
      return JSON.stringify({ ...whole, choices: shown, usage });
    },
    events: () => {
      const head = { ...whole, object: shape.chunkObject };
      return asEvents(head, { choices, usage: usageIn(body) }, shape);
    },
  };
}

/** Whether the choices that an upstream sent are answers that it has ended itself. */
function isAnswer(choices: Json | undefined, shape: ChoiceShape): boolean {
  if (!Array.isArray(choices) || choices.length === 0) return false;
  return choices.every((choice) =>
    isObject(choice) && isEndedByModel(choice) && shape.hasAnswer(choice)
  );
}

/** Choices with a number each; some servers give every choice the same. */
function numbered(choices: JsonObject[]): JsonObject[] {
  const isDistinct = new Set(choices.map(({ index }) => index)).size === choices.length;
  return isDistinct ? choices : choices.map((choice, index) => ({ ...choice, index }));
}

/**
 * Parses a body. Checked before anything is charged: it must also be possible to write it again.
 * Throws 502 for what is not an object, or nested too deep.
 */
export function parseResponse(bytes: Uint8Array): JsonObject {
  const text = decodeUtf8(bytes) ?? "";
  if (nestsDeeper(text, jsonDepthMax)) throw beyondOurBounds("a response nested too deep");
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    throw invalidUpstreamResponse(`a response of ${bytes.length} bytes that is not JSON`);
  }
  if (!isObject(value)) throw invalidUpstreamResponse("a response that is not an object");
  return value;
}

/**
 * Parses a response's body, of any format. Throws 502 as `parseResponse` does, and the error that a
 * body with status 200 is.
 */
export function readResponseBody(bytes: Uint8Array, apiKey: Secret | null): JsonObject {
  const value = parseResponse(bytes);
  if (value.error || value.type === "error" || value.object === "error") {
    throw errorOfBody(value, apiKey);
  }
  return value;
}

function errorOfBody(body: JsonObject, apiKey: Secret | null): ApiError {
  const redacted = redactKey(JSON.stringify(body), apiKey);
  const { message } = readUpstreamError(200, redacted);
  return errorInBody(redacted) ?? invalidUpstreamResponse(`an error with status 200: ${message}`);
}

/**
 * Reads the choices of a response. Throws as `readResponseBody` does, 502 where there are none, and
 * the error where all of them are errors.
 */
export function readChoicesBody(
  bytes: Uint8Array,
  apiKey: Secret | null,
): { body: JsonObject; choices: Json[] } {
  const body = readResponseBody(bytes, apiKey);
  const choices = choicesOf(body);
  if (areErrors(choices)) throw errorOfBody(body, apiKey);
  return { body, choices };
}

function choicesOf({ choices }: JsonObject): Json[] {
  if (Array.isArray(choices) && choices.length > 0) return choices;
  throw invalidUpstreamResponse("a response without choices");
}

function* textsOf(choices: readonly JsonObject[], shape: ChoiceShape): Generator<string> {
  for (const choice of choices) yield* shape.textsOf(choice);
}

/** The choices, each with what its reader should know about their balance at its end. */
function withNotice(
  choices: JsonObject[],
  { notice, balance, shape }: { notice: BalanceNotice; balance: string; shape: ChoiceShape },
): JsonObject[] {
  if (!notice.atLength && !notice.atEnd) return choices;
  return choices.map((choice) => {
    const text = noticeFor(choice.finish_reason, notice)?.(balance);
    return text ? shape.appendText(choice, text) : choice;
  });
}

/** A whole response as the events of a stream, for an upstream that answers `stream` with JSON. */
function asEvents(
  head: JsonObject,
  { choices, usage }: { choices: JsonObject[]; usage: JsonObject | undefined },
  shape: ChoiceShape,
): EventSourceMessage[] {
  const chunks = choices.flatMap(shape.asChunks).map((choice) => ({ ...head, choices: [choice] }));
  const tail = usage ? [{ ...head, choices: [], usage }] : [];
  return [...chunks, ...tail].map((chunk) => ({ data: JSON.stringify(chunk) }))
    .concat({ data: "[DONE]" }).map((event) => ({ ...event, id: undefined, event: undefined }));
}
