import { chatToResponses } from "./chat_to_responses/bridge.ts";
import { composed } from "./composed.ts";
import { messagesToChat } from "./messages_to_chat/bridge.ts";

/** Serves callers of Anthropic's messages from an upstream that speaks OpenAI's responses. */
export const messagesToResponses = composed(messagesToChat, chatToResponses, {
  // The turns are counted otherwise between: the system prompt is a message of its own there.
  messages: "messages",
  stop: "stop_sequences",
  reasoning_effort: "output_config.effort",
  response_format: "output_config.format",
  tools: "tools",
});
