import { endpoints } from "../../base/endpoints.ts";
import type { CountEndpoint } from "../../inference/count_tokens.ts";
import { withoutEngineIds } from "../openai/fields.ts";
import { messagesFormat } from "./messages_format.ts";
import { readCountRequest } from "./request.ts";

/** Anthropic's count of tokens: https://platform.claude.com/docs/en/api/messages-count-tokens */
export const messagesCount: CountEndpoint = {
  ...endpoints.messagesCount,
  kind: "count",
  format: messagesFormat,
  readRequest: readCountRequest,
  writeBody: ({ body }) => JSON.stringify(withoutEngineIds({ ...body })),
  readCount: ({ input_tokens: tokens }) =>
    typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : null,
  writeCount: (tokens) => ({ input_tokens: tokens }),
};
