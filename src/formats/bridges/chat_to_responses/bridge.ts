import type { Bridge } from "../../../inference/format.ts";
import { responsesUpstream } from "../responses_upstream.ts";
import { writeBodyAsResponses } from "./request.ts";
import { toChatCompletion } from "./response.ts";
import { ResponseEventTranslator } from "./stream.ts";

/** Serves callers of chat completions from an upstream that speaks OpenAI's responses alone. */
export const chatToResponses: Bridge = {
  format: responsesUpstream,
  writeBody: writeBodyAsResponses,
  translateWhole: toChatCompletion,
  createTranslator: (options) => new ResponseEventTranslator(options),
};
