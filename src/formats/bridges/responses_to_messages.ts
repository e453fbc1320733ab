import { chatToMessages } from "./chat_to_messages/bridge.ts";
import { composed } from "./composed.ts";
import { responsesToChat } from "./responses_to_chat/bridge.ts";

/** Serves callers of `/responses` from an upstream that speaks Anthropic's messages. */
export const responsesToMessages = composed(responsesToChat, chatToMessages, {
  messages: "input",
  reasoning_effort: "reasoning.effort",
  response_format: "text.format",
  verbosity: "text.verbosity",
  logprobs: "include",
});
