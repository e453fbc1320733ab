import type { Json } from "../../base/json.ts";
import type { TextFormat } from "../../inference/format.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { Dialect } from "../../upstreams/dialect.ts";
import { responsesToChat } from "../bridges/responses_to_chat/bridge.ts";
import { responsesToMessages } from "../bridges/responses_to_messages.ts";
import { responsesUpstream } from "../bridges/responses_upstream.ts";
import { withoutEngineIds } from "../openai/fields.ts";
import { conversationIn } from "../../inference/kept/conversations.ts";
import { errorOfResponseEvent } from "./failure.ts";
import { fitTools, requirePricedResponse } from "./fit_tools.ts";
import { itemsOfInput, referencesIn, withKeptItems } from "./input_items.ts";
import { responseIdPrefix } from "./own_ids.ts";
import { writeResponsesPaywall } from "./paywall.ts";
import { responsesMediaParts, responsesPromptTexts, responsesTemplateTokens } from "./prompt.ts";
import { progressOfResponseEvent } from "./progress.ts";
import { readResponsesRequest } from "./request.ts";
import { readWholeResponse, ResponseAssembler } from "./response.ts";
import { errorEvent, writeEvent } from "./stream_frames.ts";
import { ResponseStreamTransform } from "./stream_transform.ts";
import { responsesUsage } from "./usage.ts";

/** OpenAI's responses: https://platform.openai.com/docs/api-reference/responses */
export const responsesFormat: TextFormat = {
  kind: "text",
  ...responsesUpstream,
  bridges: [responsesToChat, responsesToMessages],
  passedHeaders: ["openai-beta"],
  idPrefix: responseIdPrefix,
  readRequest: readResponsesRequest,
  requirePriced: requirePricedResponse,
  tools: {
    fitToPrice: fitTools,
    readMore: ({ extras }) => extras.hostedTools.length > 0,
  },
  kept: { references: referencesIn, inputItems: itemsOfInput, withKept: withKeptItems },
  conversationOf: ({ body: { prompt_cache_key: name, instructions: system, input } }) =>
    conversationIn({ name, system, messages: typeof input === "string" ? asTurn(input) : input }),
  mediaParts: responsesMediaParts,
  promptTexts: responsesPromptTexts,
  templateTokens: responsesTemplateTokens,
  writeBody: writeResponsesBody,
  readResponse: readWholeResponse,
  createAssembler: (options) => new ResponseAssembler(options),
  errorOf: errorOfResponseEvent,
  progressOf: progressOfResponseEvent,
  createStream: (options) => new ResponseStreamTransform(options),
  writeUsage: responsesUsage,
  writePaywall: writeResponsesPaywall,
  errorFrame: (error) => writeEvent(errorEvent(error)),
  // The last event is the one that `usageFrame` writes.
  endFrame: "",
};

function asTurn(content: string): Json {
  return [{ role: "user", content }];
}

/** The caller's body as JSON, with our output bound. */
function writeResponsesBody({ body }: ModelRequest, cap: number, dialect: Dialect): string {
  const max_output_tokens = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  return JSON.stringify(withoutEngineIds({ ...body, max_output_tokens }));
}
