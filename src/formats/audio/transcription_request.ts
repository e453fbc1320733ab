import { z } from "zod";
import { ApiError, badRequest } from "../../base/errors.ts";
import { modelName, userField } from "../../base/fields.ts";
import type { FormFile } from "../../base/form_body.ts";
import type { JsonObject } from "../../base/json.ts";
import { audioFileBytesMax } from "../../base/limits.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, FileSize, ModelRequest } from "../../inference/model_request.ts";
import { secondsByBytes, soundSecondsOf } from "../../pricing/media_length.ts";
import { soundTokens } from "../../pricing/media_tokens.ts";
import { requireExactNames } from "../openai/fields.ts";
import { requireKnownMadeFields } from "../openai/known_fields.ts";
import { passedOnRequest } from "../openai/passed_on.ts";
import { requireNoStoredFields } from "../openai/stored_things.ts";

/** The texts of a form that asks for a transcript. Only those that the price depends on. */
export const transcriptionTextsSchema = z.looseObject({
  model: modelName,
  prompt: z.string().optional(),
  response_format: z.string().max(32).optional().meta({
    description: "`json`, `text`, `srt`, `verbose_json`, `vtt` or `diarized_json`.",
  }),
  stream: z.enum(["true", "false", ""]).optional(),
  user: userField,
});

const fieldNames = [...Object.keys(transcriptionTextsSchema.shape), "file"];

/** Nobody speaks this many tokens a second. */
const tokensPerSecondMax = 10;
const leastTokens = 256;

/** Reads a form with a sound. Throws 400 for a malformed one, 413 for too large a file. */
export function readTranscriptionRequest(
  body: JsonObject,
  { bytes, fields, file = null }: { bytes: number; fields: FieldPolicy; file?: FormFile | null },
): ModelRequest {
  requireExactNames(body, fieldNames);
  const { model } = parseWith(transcriptionTextsSchema, body);
  requireKnownMadeFields(body, { of: "transcriptions", policy: fields });
  requireNoStoredFields(body, fields.allowed);
  if (!file) {
    throw badRequest("file", "Missing required parameter: 'file'.", "missing_required_parameter");
  }
  if (file.bytes.length === 0) throw badRequest("file", "'file' is empty.");
  if (file.bytes.length > audioFileBytesMax) {
    throw new ApiError(413, {
      message: `'file' is larger than ${audioFileBytesMax} bytes.`,
      param: "file",
      code: "request_too_large",
    });
  }
  // What a header says bounds no report.
  const byBytes = secondsByBytes(file.bytes.length);
  const sizeOf = (audioSeconds: number): FileSize => {
    const { input, output } = tokensOf(audioSeconds, model);
    const units = { audioSeconds, audioSecondsMost: Math.max(audioSeconds, byBytes) };
    return { fileTokens: input, outputTokens: output, units };
  };
  return {
    ...passedOnRequest(body, { model, bytes }),
    file,
    fileMost: tokensOf(byBytes, model),
    ...sizeOf(shortestSeconds),
    measure: () => sizeOf(soundSecondsOf(file.bytes, "")),
  };
}

/** No sound is shorter; each second that has begun is charged. */
const shortestSeconds = 0.001;

function tokensOf(seconds: number, model: string): { input: number; output: number } {
  return {
    input: Math.ceil(soundTokens(seconds, model)) + 1,
    output: Math.ceil(seconds * tokensPerSecondMax) + leastTokens,
  };
}
