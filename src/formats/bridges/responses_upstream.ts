import { endpoints } from "../../base/endpoints.ts";
import type { Bridge } from "../../inference/format.ts";
import { ResponsesScanner } from "../responses/response_scan.ts";

/** How an upstream is called that speaks OpenAI's responses. */
export const responsesUpstream: Bridge["format"] = {
  ...endpoints.responses,
  maxTokensFields: ["max_output_tokens"],
  createScanner: () => new ResponsesScanner(),
};
