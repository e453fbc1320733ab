import { z } from "zod";
import { callHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { embeddingRequestSchema } from "./request.ts";

const embeddingsSchema = z.looseObject({
  object: z.string().optional(),
  data: z.array(z.looseObject({})).optional(),
  model: z.string().optional(),
}).meta({ id: "Embeddings", description: "The upstream's own response." });

const request = { model: "text-embedding-3-small", input: ["one", "two"], user: "ada" };
const vectors = {
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [0.1, -0.2] }],
  model: "text-embedding-3-small",
  usage: { prompt_tokens: 2, total_tokens: 2 },
};

/** The document of `POST /v1/embeddings`. */
export const embeddingsDoc: CallDoc = {
  operationId: "createEmbedding",
  summary: "Create embeddings",
  description: "The response passes on as the upstream sent it. A user who must top up gets 402 " +
    "with the message and the link.",
  body: { schema: embeddingRequestSchema, examples: { whole: request } },
  answers: {
    200: {
      description: "The embeddings.",
      content: { "application/json": { schema: embeddingsSchema, examples: { vectors } } },
      headers: callHeaders,
    },
  },
};
