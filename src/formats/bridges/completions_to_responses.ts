import { chatToResponses } from "./chat_to_responses/bridge.ts";
import { completionsToChat } from "./completions_to_chat.ts";
import { composed } from "./composed.ts";

/** Serves callers of legacy completions from an upstream that speaks OpenAI's responses. */
export const completionsToResponses = composed(completionsToChat, chatToResponses, {
  messages: "prompt",
});
