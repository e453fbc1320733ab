import type { TextFormat } from "../../inference/format.ts";
import { openAiUsage } from "../openai/usage.ts";
import { errorFrame, sseDone } from "../openai/sse.ts";
import { requirePricedFields } from "../openai/fields.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";
import { OpenAiAssembler, readChoices } from "../openai/response.ts";
import { progressOfChunk } from "../openai/progress.ts";
import { errorOfEvent } from "../openai/stream_error.ts";
import { ChoiceStreamTransform } from "../openai/stream_transform.ts";
import { chatUpstream } from "../bridges/chat_upstream.ts";
import { chatToMessages } from "../bridges/chat_to_messages/bridge.ts";
import { chatToResponses } from "../bridges/chat_to_responses/bridge.ts";
import { chatChoice } from "./choice.ts";
import { writeChatPaywall } from "./paywall.ts";
import { mediaParts, promptTexts, templateTokens } from "./prompt.ts";
import { readChatRequest } from "./request.ts";
import { conversationIn } from "../../inference/kept/conversations.ts";
import { writeUpstreamBody } from "./upstream_body.ts";

/** OpenAI's chat completions: https://platform.openai.com/docs/api-reference/chat */
export const chatFormat: TextFormat = {
  kind: "text",
  ...chatUpstream,
  passedHeaders: ["openai-beta"],
  idPrefix: "chatcmpl-",
  bridges: [chatToMessages, chatToResponses],
  readRequest: readChatRequest,
  requirePriced: requirePricedFields,
  conversationOf: ({ body: { prompt_cache_key: name, messages } }) =>
    conversationIn({ name, messages }),
  mediaParts,
  promptTexts,
  templateTokens,
  writeBody: writeUpstreamBody,
  readResponse: (bytes, options) => readChoices(bytes, options, chatChoice),
  createAssembler: (options) => new OpenAiAssembler(options, chatChoice),
  createScanner: () => new OpenAiScanner(),
  errorOf: errorOfEvent,
  progressOf: progressOfChunk,
  createStream: (options) => new ChoiceStreamTransform(options, chatChoice),
  writeUsage: openAiUsage,
  writePaywall: writeChatPaywall,
  errorFrame,
  endFrame: sseDone,
};
