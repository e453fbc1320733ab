import { endpoints } from "../../base/endpoints.ts";
import type { PassedBody, PassedFormat } from "../../inference/format.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import { bytesPerSecond } from "../../pricing/media_length.ts";
import { requirePricedFields } from "../openai/fields.ts";
import { passedOnFormat, requireMadePriced } from "../openai/passed_on.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";
import { readSpeechRequest } from "./speech_request.ts";

/** OpenAI's models make so many tokens of a minute of sound, by their price of a minute. */
const tokensPerSecond = 1_250 / 60;
/**
 * Tokens of speech for a character of text, where the length of the sound is not known: slow
 * English has fewer.
 */
const tokensPerCharacter = 2;

/**
 * OpenAI's speech: https://platform.openai.com/docs/api-reference/audio/createSpeech. The sound
 * passes on as it arrives.
 */
export const speechFormat: PassedFormat = {
  ...passedOnFormat,
  ...endpoints.speech,
  idPrefix: "speech-",
  unit: "characters",
  classes: { input: "uncachedInput", output: "audioOutput" },
  bodies: { texts: [], streamed: ["audio/", "application/octet-stream", "application/ogg"] },
  countOutput,
  readRequest: readSpeechRequest,
  requirePriced(request, covers, allowed) {
    // How fast a voice speaks is no service tier.
    const { speed: _, ...body } = request.body;
    requirePricedFields({ ...request, body }, covers, allowed);
    requireMadePriced(request, covers, { unit: "characters", tokens: "audioOutput" });
  },
  *promptTexts({ body: { input, instructions } }) {
    if (typeof input === "string") yield input;
    if (typeof instructions === "string") yield instructions;
  },
  templateTokens: () => 0,
  // The endpoint has no field for the user.
  writeBody: ({ body }) =>
    JSON.stringify({ ...body, user: undefined, safety_identifier: undefined }),
  createScanner: () => new OpenAiScanner(),
};

/**
 * Counts the output tokens by the length of the sound, where its bytes tell it; else by the text.
 */
function countOutput({ body, units }: ModelRequest, { start, bytes }: PassedBody): number {
  const format = typeof body.response_format === "string" ? body.response_format : "";
  const rate = body.stream_format === "sse" ? null : bytesPerSecond(start, format);
  const tokens = rate === null
    ? (units?.characters ?? 0) * tokensPerCharacter
    : bytes / rate * tokensPerSecond;
  return Math.ceil(tokens);
}
