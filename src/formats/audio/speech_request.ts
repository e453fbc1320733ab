import { z } from "zod";
import { modelName, userField } from "../../base/fields.ts";
import type { JsonObject } from "../../base/json.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, ModelRequest } from "../../inference/model_request.ts";
import { requireExactNames } from "../openai/fields.ts";
import { requireKnownMadeFields } from "../openai/known_fields.ts";
import { passedOnRequest } from "../openai/passed_on.ts";
import { requireNoStoredFields } from "../openai/stored_things.ts";

/** A request for speech. Only fields that the price depends on are checked. */
export const speechRequestSchema = z.looseObject({
  model: modelName,
  input: z.string().min(1).max(100_000).meta({ description: "The text that is spoken." }),
  instructions: z.string().nullish(),
  response_format: z.string().max(32).nullish(),
  speed: z.number().min(0.1).max(10).nullish(),
  stream_format: z.enum(["audio", "sse"]).nullish(),
  user: userField,
}).meta({ id: "SpeechRequest" });

const fieldNames = Object.keys(speechRequestSchema.shape);

/**
 * The most tokens of sound for a character: 0.4 seconds, at 1,250 tokens a minute. English has a
 * sixth of that, and Chinese two thirds.
 */
const tokensPerCharacterMax = 8;
const silenceTokens = 256;

/** Reads a request for speech. Throws 400 for a malformed one, and for refused fields. */
export function readSpeechRequest(
  body: JsonObject,
  { bytes, fields }: { bytes: number; fields: FieldPolicy },
): ModelRequest {
  requireExactNames(body, fieldNames);
  const { model, input, speed } = parseWith(speechRequestSchema, body);
  requireKnownMadeFields(body, { of: "speech", policy: fields });
  requireNoStoredFields(body, fields.allowed);
  const characters = codePoints(input);
  const request = passedOnRequest(body, { model, bytes });
  const tokens = characters * tokensPerCharacterMax / Math.min(1, speed ?? 1) + silenceTokens;
  return {
    ...request,
    extras: { ...request.extras, modalities: ["audio"] },
    units: { characters },
    outputTokens: Math.ceil(tokens),
  };
}

/** Characters as providers count them: of Unicode, not of UTF-16. */
function codePoints(text: string): number {
  let count = text.length;
  // Iterating over the text's characters takes ten times as long.
  for (let at = 0; at < text.length; at++) {
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) count--;
  }
  return count;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
