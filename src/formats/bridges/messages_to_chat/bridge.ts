import type { Bridge } from "../../../inference/format.ts";
import { chatUpstream } from "../chat_upstream.ts";
import { writeBodyAsChat } from "./request.ts";
import { toMessage } from "./response.ts";
import { MessageEventTranslator } from "./stream.ts";

/**
 * Serves callers of Anthropic's messages from an upstream that speaks chat completions: llama.cpp,
 * vLLM, Ollama and others.
 */
export const messagesToChat: Bridge = {
  format: chatUpstream,
  writeBody: writeBodyAsChat,
  translateWhole: toMessage,
  createTranslator: (options) => new MessageEventTranslator(options),
};
