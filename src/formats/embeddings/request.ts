import { z } from "zod";
import { badRequest } from "../../base/errors.ts";
import { modelName, userField } from "../../base/fields.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, ModelRequest } from "../../inference/model_request.ts";
import { requireExactNames } from "../openai/fields.ts";
import { requireKnownEmbeddingFields } from "../openai/known_fields.ts";
import { requireNoStoredFields } from "../openai/stored_things.ts";
import { passedOnRequest } from "../openai/passed_on.ts";
import { inputsIn, isListOfTokens, isTokenIds } from "../openai/token_ids.ts";

/** Inputs of one request: OpenAI's own bound. */
const inputsMax = 2_048;

const inputWords =
  "must be a text, a list of texts, a list of token ids, or a list of those, and not empty";
const input = z.union([
  z.string(),
  z.array(z.string()),
  z.array(z.int().min(0)),
  z.array(z.array(z.int().min(0))),
]).meta({ description: "Text, token ids, or a list of either." });

/** A request for embeddings. Only fields that the price depends on are checked. */
export const embeddingRequestSchema = z.looseObject({
  model: modelName,
  input,
  user: userField,
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).nullish(),
}).meta({ id: "EmbeddingRequest" });

// A union over long lists of numbers is slow and keeps an error for each: only its kind is checked.
const checkedSchema = embeddingRequestSchema.extend({
  input: z.custom<Json>(isInput, { error: inputWords }),
});
const fieldNames = Object.keys(embeddingRequestSchema.shape);

/** Reads a request for embeddings. Throws 400 for a malformed one, and for refused fields. */
export function readEmbeddingRequest(
  body: JsonObject,
  { bytes, fields }: { bytes: number; fields: FieldPolicy },
): ModelRequest {
  requireExactNames(body, fieldNames);
  const { model } = parseWith(checkedSchema, body);
  requireKnownEmbeddingFields(body, fields);
  requireNoStoredFields(body, fields.allowed);
  const inputs = inputsOf(body).length;
  if (inputs > inputsMax) {
    throw badRequest("input", `'input' has ${inputs} inputs. The most is ${inputsMax}.`);
  }
  // An embedding has no output tokens.
  return passedOnRequest(body, { model, bytes });
}

/** The inputs of a valid request: texts, or lists of token ids. */
export function inputsOf({ input }: JsonObject): (string | Json[])[] {
  return inputsIn(input);
}

/** Whether a value is one of the four forms of input, and nothing of it is empty. */
function isInput(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  if (!Array.isArray(value) || value.length === 0) return false;
  if (isTokenIds(value)) return true;
  if (value.every((item) => typeof item === "string")) return !value.includes("");
  return isListOfTokens(value) && value.every((item) => item.length > 0);
}
