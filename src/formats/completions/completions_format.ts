import { endpoints } from "../../base/endpoints.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { TextFormat } from "../../inference/format.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { Dialect } from "../../upstreams/dialect.ts";
import { requirePricedFields, withoutEngineIds } from "../openai/fields.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";
import { OpenAiAssembler, readChoices } from "../openai/response.ts";
import { progressOfChunk } from "../openai/progress.ts";
import { errorOfEvent } from "../openai/stream_error.ts";
import { errorFrame, sseDone } from "../openai/sse.ts";
import { ChoiceStreamTransform } from "../openai/stream_transform.ts";
import { openAiUsage } from "../openai/usage.ts";
import { completionsToChat } from "../bridges/completions_to_chat.ts";
import { completionsToMessages } from "../bridges/completions_to_messages.ts";
import { completionsToResponses } from "../bridges/completions_to_responses.ts";
import { createCompletionChoice } from "./choice.ts";
import { writeCompletionPaywall } from "./paywall.ts";
import {
  completionPromptTexts,
  completionTemplateTokens,
  readCompletionRequest,
} from "./request.ts";

/** OpenAI's legacy completions: https://platform.openai.com/docs/api-reference/completions */
export const completionsFormat: TextFormat = {
  kind: "text",
  ...endpoints.completions,
  passedHeaders: ["openai-beta"],
  idPrefix: "cmpl-",
  bridges: [completionsToChat, completionsToMessages, completionsToResponses],
  maxTokensFields: ["max_tokens"],
  readRequest: readCompletionRequest,
  requirePriced: requirePricedFields,
  mediaParts: () => [],
  promptTexts: completionPromptTexts,
  templateTokens: completionTemplateTokens,
  writeBody,
  readResponse: (bytes, options) =>
    readChoices(bytes, options, createCompletionChoice(options.request)),
  createAssembler: (options) =>
    new OpenAiAssembler(options, createCompletionChoice(options.request)),
  createScanner: () => new OpenAiScanner(),
  errorOf: errorOfEvent,
  progressOf: progressOfChunk,
  createStream: (options) =>
    new ChoiceStreamTransform(options, createCompletionChoice(options.request)),
  writeUsage: openAiUsage,
  writePaywall: writeCompletionPaywall,
  errorFrame,
  endFrame: sseDone,
};

/** The caller's body with our output bound and, for a stream, a request for usage. */
function writeBody({ body, stream }: ModelRequest, cap: number, dialect: Dialect): string {
  const written: Partial<JsonObject> = { ...body };
  written.max_tokens = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  if (stream) {
    const options = isObject(body.stream_options) ? body.stream_options : {};
    written.stream_options = dialect.requestsUsage
      ? { ...options, include_usage: true }
      : undefined;
  }
  return JSON.stringify(withoutEngineIds(written));
}
