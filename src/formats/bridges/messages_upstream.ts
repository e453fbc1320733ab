import { endpoints } from "../../base/endpoints.ts";
import type { Bridge } from "../../inference/format.ts";
import { MessageScanner } from "../messages/scanner.ts";

/** The version of Anthropic's API whose requests and responses the bridges write and read. */
const anthropicVersion = "2023-06-01";

/** How an upstream is called that speaks Anthropic's messages. */
export const messagesUpstream: Bridge["format"] = {
  ...endpoints.messages,
  maxTokensFields: ["max_tokens"],
  createScanner: () => new MessageScanner(),
  upstreamHeaders: (apiKey) => ({
    "anthropic-version": anthropicVersion,
    ...(apiKey ? { "x-api-key": apiKey.reveal() } : {}),
  }),
};
