import { endpoints } from "../../base/endpoints.ts";
import type { CountEndpoint } from "../../inference/count_tokens.ts";
import { words } from "../openai/known_fields.ts";
import { readResponsesRequest } from "./request.ts";
import { responsesFormat } from "./responses_format.ts";

/** The members of a request whose tokens OpenAI counts; it refuses others. */
const countedFields = words(
  "model input instructions previous_response_id tools tool_choice parallel_tool_calls reasoning",
  "text truncation",
);

/** OpenAI's count of tokens: https://platform.openai.com/docs/api-reference/responses/input-tokens */
export const responsesCount: CountEndpoint = {
  ...endpoints.responsesCount,
  kind: "count",
  format: responsesFormat,
  readRequest: (body, options) => ({
    ...readResponsesRequest(body, options),
    stream: false,
    maxTokens: 0,
  }),
  writeBody: ({ body }) =>
    JSON.stringify(Object.fromEntries(countedFields.map((name) => [name, body[name]]))),
  readCount: ({ input_tokens: tokens }) =>
    typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : null,
  writeCount: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
};
