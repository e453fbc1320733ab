import type { Bridge } from "../../../inference/format.ts";
import { messagesUpstream } from "../messages_upstream.ts";
import { writeBodyAsMessages } from "./request.ts";
import { toCompletion } from "./response.ts";
import { ChunkTranslator } from "./stream.ts";

/** Serves callers of chat completions from an upstream that speaks Anthropic's messages. */
export const chatToMessages: Bridge = {
  format: messagesUpstream,
  writeBody: writeBodyAsMessages,
  translateWhole: toCompletion,
  createTranslator: (options) => new ChunkTranslator(options),
};
