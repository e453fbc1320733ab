import { z } from "zod";
import { answers, type Operations } from "../base/operation.ts";

const etag = z.object({ ETag: z.string().meta({ description: "Of this document." }) });

/** The document describes itself too. */
export const docsOperations: Operations = {
  "/openapi.json": {
    GET: {
      tag: "Health",
      access: "anyone",
      operationId: "getApiDocument",
      summary: "Get this document",
      headers: z.object({
        "If-None-Match": z.string().optional().meta({ description: "The `ETag` you have." }),
      }),
      answers: {
        200: answers(
          "The API as OpenAPI 3.1.",
          z.looseObject({ openapi: z.string() }),
          { document: { openapi: "3.1.1" } },
          etag,
        ),
        304: { description: "You have it already.", content: {}, headers: etag },
      },
    },
  },
};
