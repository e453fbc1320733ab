import type { Bridge } from "../../inference/format.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";

/** How an upstream is called that speaks chat completions. */
export const chatUpstream: Bridge["format"] = {
  name: "chat",
  upstreamPath: "/chat/completions",
  maxTokensFields: ["max_tokens", "max_completion_tokens"],
  createScanner: () => new OpenAiScanner(),
};
