import { z } from "zod";
import { type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";

const etag = z.object({ ETag: z.string().meta({ description: "The version of this document." }) });

/** The document describes itself too. */
export const docsApiDoc: EndpointDocs = {
  "/openapi.json": {
    GET: {
      tag: "Health",
      access: "anyone",
      operationId: "getApiDocument",
      summary: "Retrieve the OpenAPI document",
      headers: z.object({
        "If-None-Match": z.string().optional().meta({ description: "The `ETag` of your copy." }),
      }),
      answers: {
        200: responseDocs(
          "The API as OpenAPI 3.1.",
          z.looseObject({ openapi: z.string() }),
          { document: { openapi: "3.1.1" } },
          etag,
        ),
        304: { description: "Your copy is current.", content: {}, headers: etag },
      },
    },
  },
};
