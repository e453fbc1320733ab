import type { Format, PaywallMessage, ResponseScanner } from "../../inference/format.ts";
import { invalidUpstreamResponse } from "../../upstreams/errors.ts";
import { isObject } from "../../base/json.ts";
import { requirePricedFields, withoutEngineIds } from "../openai/fields.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";
import { errorFrame, sseDone } from "../openai/sse.ts";
import { errorOfEvent } from "../openai/stream_error.ts";
import { openAiUsage } from "../openai/usage.ts";
import { inputsOf, readEmbeddingRequest } from "./request.ts";

/**
 * OpenAI's embeddings: https://platform.openai.com/docs/api-reference/embeddings. The response
 * passes on as it is: only its usage is read.
 */
export const embeddingsFormat: Format = {
  name: "embeddings",
  upstreamPath: "/embeddings",
  passedHeaders: ["openai-beta"],
  idPrefix: "emb-",
  maxTokensFields: [],
  isPassedOn: true,
  readRequest: readEmbeddingRequest,
  requirePriced: requirePricedFields,
  mediaParts: () => [],
  *promptTexts({ body }) {
    for (const input of inputsOf(body)) if (typeof input === "string") yield input;
  },
  // Token ids count as they are.
  templateTokens: ({ body }) =>
    inputsOf(body).reduce((sum, input) => sum + (typeof input === "string" ? 0 : input.length), 0),
  writeBody: ({ body }) => JSON.stringify(withoutEngineIds({ ...body })),
  createScanner: () => new EmbeddingScanner(),
  errorOf: errorOfEvent,
  writeUsage: openAiUsage,
  writePaywall: writeEmbeddingPaywall,
  errorFrame,
  endFrame: sseDone,
  readResponse: notRead,
  createAssembler: notRead,
  createStream: notRead,
};

function notRead(): never {
  throw invalidUpstreamResponse("a stream in place of embeddings");
}

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

/** An error that says how to pay: an embedding has no text that could say it. */
function writeEmbeddingPaywall({ reason, message }: PaywallMessage): string {
  return JSON.stringify({
    error: { message, type: "payment_required", param: null, code: reason },
  });
}
