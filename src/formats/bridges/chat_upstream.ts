import { endpoints } from "../../base/endpoints.ts";
import type { Bridge } from "../../inference/format.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";

/** How an upstream is called that speaks chat completions. */
export const chatUpstream: Bridge["format"] = {
  ...endpoints.chat,
  maxTokensFields: ["max_tokens", "max_completion_tokens"],
  createScanner: () => new OpenAiScanner(),
};
