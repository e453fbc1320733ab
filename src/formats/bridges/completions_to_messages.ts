import { chatToMessages } from "./chat_to_messages/bridge.ts";
import { completionsToChat } from "./completions_to_chat.ts";
import { composed } from "./composed.ts";

/** Serves callers of legacy completions from an upstream that speaks Anthropic's messages. */
export const completionsToMessages = composed(completionsToChat, chatToMessages, {
  messages: "prompt",
});
