import type { Format } from "../../inference/format.ts";
import { openAiUsage } from "../openai_usage.ts";
import { errorFrame, sseDone } from "../sse.ts";
import { writePaywall } from "./paywall.ts";
import { mediaParts, promptTexts, templateTokens } from "./prompt.ts";
import { readChatRequest } from "./request.ts";
import { readCompletion } from "./response.ts";
import { ChatStreamTransform } from "./stream_transform.ts";
import { writeUpstreamBody } from "./upstream_body.ts";

/** OpenAI's chat completions: https://platform.openai.com/docs/api-reference/chat */
export const chatFormat: Format = {
  upstreamPath: "/chat/completions",
  maxTokensFields: ["max_tokens", "max_completion_tokens"],
  readRequest: readChatRequest,
  mediaParts,
  promptTexts,
  templateTokens,
  writeBody: writeUpstreamBody,
  readResponse: readCompletion,
  createStream: (options) => new ChatStreamTransform(options),
  writeUsage: openAiUsage,
  writePaywall,
  errorFrame,
  endFrame: sseDone,
};
