import { z } from "zod";
import { errorSchema } from "../../base/errors.ts";
import { callHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { imageRequestSchema } from "./request.ts";

const imagesSchema = z.looseObject({
  created: z.int().optional(),
  data: z.array(z.looseObject({})).optional(),
}).meta({ id: "Images", description: "The upstream's own response." });

const request = { model: "dall-e-3", prompt: "A lighthouse", size: "1024x1024", user: "ada" };
const images = { created: 1_769_851_800, data: [{ b64_json: "iVBORw0KGgo=" }] };
const event = { type: "image_generation.completed", b64_json: "iVBORw0KGgo=" };

/** The document of `POST /v1/images/generations`. */
export const imagesDoc: CallDoc = {
  operationId: "createImage",
  summary: "Create images",
  description: "Charged by the image, its quality and its size, or by tokens, as the price says. " +
    "The response passes on as the upstream sent it. A user who must top up gets 402 with the " +
    "message and the link.",
  body: {
    schema: imageRequestSchema,
    examples: { whole: request, streamed: { ...request, model: "gpt-image-1", stream: true } },
  },
  answers: {
    200: {
      description: "The images.",
      content: {
        "application/json": { schema: imagesSchema, examples: { images } },
        "text/event-stream": {
          schema: z.union([z.looseObject({ type: z.string() }), errorSchema]),
          examples: { event },
        },
      },
      headers: callHeaders,
    },
  },
};
