import type { TextFormat } from "../../inference/format.ts";
import { messagesToChat } from "../bridges/messages_to_chat/bridge.ts";
import { messagesToResponses } from "../bridges/messages_to_responses.ts";
import { messagesUpstream } from "../bridges/messages_upstream.ts";
import { conversationIn } from "../../inference/kept/conversations.ts";
import { errorOfEvent } from "../openai/stream_error.ts";
import { MessageAssembler } from "./assembler.ts";
import { eventFrame, messagesErrorBody, messagesErrorFrame } from "./errors.ts";
import { writeMessagesPaywall } from "./paywall.ts";
import { requirePricedMessage } from "./priced_fields.ts";
import {
  addedTokens,
  messageMediaParts,
  messagePromptTexts,
  messageTemplateTokens,
} from "./prompt.ts";
import { progressOfMessageEvent } from "./progress.ts";
import { readMessagesRequest } from "./request.ts";
import { readMessage } from "./response.ts";
import { MessageScanner } from "./scanner.ts";
import { MessageStreamTransform } from "./stream_transform.ts";
import { fitToolsToPrice } from "./tools.ts";
import { writeMessagesBody } from "./upstream_body.ts";
import { messageUsage } from "./usage.ts";

/** Anthropic's messages: https://platform.claude.com/docs/en/api/messages */
export const messagesFormat: TextFormat = {
  kind: "text",
  ...messagesUpstream,
  bridges: [messagesToChat, messagesToResponses],
  idPrefix: "msg_",
  hasNoUserField: true,
  passedHeaders: ["anthropic-version", "anthropic-beta"],
  errorBody: messagesErrorBody,
  requestIdHeader: "request-id",
  readRequest: readMessagesRequest,
  tools: {
    fitToPrice: fitToolsToPrice,
    readMore: ({ extras }) => extras.hostedTools.length > 0,
  },
  requirePriced: requirePricedMessage,
  conversationOf: ({ body: { system, messages } }) => conversationIn({ system, messages }),
  mediaParts: messageMediaParts,
  promptTexts: messagePromptTexts,
  templateTokens: messageTemplateTokens,
  addedTokens,
  writeBody: writeMessagesBody,
  readResponse: readMessage,
  createAssembler: (options) => new MessageAssembler(options),
  createScanner: () => new MessageScanner(),
  errorOf: errorOfEvent,
  progressOf: progressOfMessageEvent,
  createStream: (options) => new MessageStreamTransform(options),
  writeUsage: messageUsage,
  writePaywall: writeMessagesPaywall,
  errorFrame: messagesErrorFrame,
  endFrame: eventFrame("message_stop", '{"type":"message_stop"}'),
};
