import { endpoints } from "../../base/endpoints.ts";
import { writeForm } from "../../base/form_body.ts";
import { isObject } from "../../base/json.ts";
import type { PassedFormat } from "../../inference/format.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import { requirePricedFields } from "../openai/fields.ts";
import { passedOnFormat, requireMadePriced } from "../openai/passed_on.ts";
import { parsedChunk } from "../openai/stream_error.ts";
import { TranscriptScanner } from "./transcript_scanner.ts";
import { readTranscriptionRequest } from "./transcription_request.ts";

/**
 * OpenAI's transcripts: https://platform.openai.com/docs/api-reference/audio/createTranscription.
 * The form is written anew for the upstream, and its response passes on as it is.
 */
export const transcriptionsFormat: PassedFormat = {
  ...passedOnFormat,
  ...endpoints.transcriptions,
  idPrefix: "transcript-",
  readsForms: true,
  unit: "audioMinutes",
  classes: { input: "audioInput", output: "output" },
  bodies: { texts: ["text/plain", "text/vtt", "text/srt", "application/x-subrip"], streamed: [] },
  textOf,
  readRequest: readTranscriptionRequest,
  requirePriced(request, covers, allowed) {
    requirePricedFields(request, covers, allowed);
    requireMadePriced(request, covers, { unit: "audioMinutes", tokens: "audioInput" });
  },
  *promptTexts({ body: { prompt } }) {
    if (typeof prompt === "string") yield prompt;
  },
  templateTokens: () => 0,
  writeBody,
  createScanner: () => new TranscriptScanner(),
};

/**
 * Translations into English: https://platform.openai.com/docs/api-reference/audio/createTranslation
 */
export const translationsFormat: PassedFormat = {
  ...transcriptionsFormat,
  ...endpoints.translations,
  idPrefix: "translation-",
};

function writeBody({ body, file }: ModelRequest) {
  if (!file) throw new Error("a form without its file");
  // The endpoint has no field for the user.
  const { user: _user, safety_identifier: _identifier, ...texts } = body;
  return writeForm(texts, file);
}

function textOf(body: string, isJson: boolean): string {
  if (!isJson) return body;
  const parsed = parsedChunk(body);
  return isObject(parsed) && typeof parsed.text === "string" ? parsed.text : "";
}
