import { endpoints } from "../../base/endpoints.ts";
import type { PassedFormat } from "../../inference/format.ts";
import { requirePricedFields, withoutEngineIds } from "../openai/fields.ts";
import { passedOnFormat } from "../openai/passed_on.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";
import { inputsOf, readEmbeddingRequest } from "./request.ts";

/**
 * OpenAI's embeddings: https://platform.openai.com/docs/api-reference/embeddings. The response
 * passes on as it is: only its usage is read.
 */
export const embeddingsFormat: PassedFormat = {
  ...passedOnFormat,
  ...endpoints.embeddings,
  idPrefix: "emb-",
  unit: null,
  classes: { input: "uncachedInput", output: null },
  bodies: null,
  readRequest: readEmbeddingRequest,
  requirePriced: requirePricedFields,
  *promptTexts({ body }) {
    for (const input of inputsOf(body)) if (typeof input === "string") yield input;
  },
  // Token ids count as they are.
  templateTokens: ({ body }) =>
    inputsOf(body).reduce((sum, input) => sum + (typeof input === "string" ? 0 : input.length), 0),
  writeBody: ({ body }) => JSON.stringify(withoutEngineIds({ ...body })),
  createScanner: () => new OpenAiScanner(),
};
