import { type Json, type JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { ResponseHead } from "../../inference/upstream_response.ts";

/** What mending a choice goes by: the request, and what identifies its response. */
export interface MendOptions {
  request: Pick<ModelRequest, "body">;
  head: Pick<ResponseHead, "id">;
}

/**
 * The difference between OpenAI's endpoints that answer with `choices`: how a choice holds its
 * text, in a whole response and in a chunk of a stream.
 */
export interface ChoiceShape {
  /** `object` of a whole response and of a chunk. */
  object: string;
  chunkObject: string;
  /**
   * A choice of a whole response with what clients rely on, added where the upstream left it out;
   * null for one without a message. `position` is its place in the list.
   */
  normalizeChoice(choice: Json, position: number, options: MendOptions): JsonObject | null;
  /** All that the model wrote in a choice of a whole response. */
  textsOf(choice: JsonObject): Iterable<string>;
  /** A choice of a whole response with a text at its end. */
  appendText(choice: JsonObject, text: string): JsonObject;
  /** The choices of two chunks that say what a choice of a whole response says: text, then end. */
  asChunks(choice: JsonObject): [JsonObject, JsonObject];
  /** Creates what mends the choices of one stream. */
  createMender(options: MendOptions): ChoiceMender;
  /** All that the model wrote in a choice of a chunk. */
  deltaTextsOf(choice: JsonObject): Iterable<string>;
  /** Whether a choice of a whole response has an answer: more than reasoning or a refusal. */
  hasAnswer(choice: JsonObject): boolean;
  /** The URLs of the images in a choice, of a whole response or of a chunk. */
  imagesOf(choice: JsonObject): readonly string[];
  /** Whether a choice of a chunk says anything besides its end. */
  hasDelta(choice: JsonObject): boolean;
  /** A choice of a chunk of ours. */
  createDelta(index: number, text: string | null, finishReason: string | null): JsonObject;
}

/** Mends the choices of the chunks of one stream. */
export interface ChoiceMender {
  /**
   * A choice of a chunk with what clients rely on: the same object where it lacks nothing; null for
   * one that is not valid. `position` is its place in the chunk.
   */
  mend(choice: Json, position: number): JsonObject | null;
  /** Notes that a choice calls a tool, in a chunk that was too large to be mended. */
  noteToolCall(index: number): void;
}
