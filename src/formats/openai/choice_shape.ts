import { type Json, type JsonObject } from "../../base/json.ts";

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
  normalizeChoice(choice: Json, position: number): JsonObject | null;
  /** All that the model wrote in a choice of a whole response. */
  textsOf(choice: JsonObject): Iterable<string>;
  /** A choice of a whole response with a text at its end. */
  appendText(choice: JsonObject, text: string): JsonObject;
  /** The choices of two chunks that say what a choice of a whole response says: text, then end. */
  asChunks(choice: JsonObject): [JsonObject, JsonObject];
  /**
   * A choice of a chunk: the same object where it lacks nothing; null for one that is not valid.
   */
  normalizeDelta(choice: Json): JsonObject | null;
  /** All that the model wrote in a choice of a chunk. */
  deltaTextsOf(choice: JsonObject): Iterable<string>;
  /** Whether a choice of a whole response has an answer: more than reasoning or a refusal. */
  hasAnswer(choice: JsonObject): boolean;
  /** The URLs of the images in a choice, of a whole response or of a chunk. */
  imagesOf(choice: JsonObject): readonly string[];
  /** Whether a choice of a chunk calls a tool. */
  callsTool(choice: JsonObject): boolean;
  /** Whether a choice of a chunk says anything besides its end. */
  hasDelta(choice: JsonObject): boolean;
  /** A choice of a chunk of ours. */
  createDelta(index: number, text: string | null, finishReason: string | null): JsonObject;
}
