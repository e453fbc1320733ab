import { endpoints } from "../../base/endpoints.ts";
import type { PassedFormat } from "../../inference/format.ts";
import type { ResponseScanner } from "../../inference/upstream_response.ts";
import { isObject } from "../../base/json.ts";
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
  createScanner: () => new EmbeddingScanner(),
};

/** Reads usage as OpenAI reports it here, without a completion. */
class EmbeddingScanner implements ResponseScanner {
  readonly #scanner = new OpenAiScanner();

  push(text: string): void {
    this.#scanner.push(text);
  }

  get served() {
    return this.#scanner.served;
  }

  get usages() {
    return this.#scanner.usages.filter(isObject).map((usage) => ({
      ...usage,
      completion_tokens: 0,
      total_tokens: null,
    }));
  }
}
