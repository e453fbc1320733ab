import { z } from "zod";
import { responseDocs } from "../../base/endpoint_doc.ts";
import { freeCallHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { moderationRequestSchema } from "./moderations_format.ts";

const moderationSchema = z.looseObject({
  id: z.string().optional(),
  model: z.string().optional(),
  results: z.array(z.looseObject({})).optional(),
}).meta({ id: "Moderation", description: "The upstream's own response." });

const moderation = {
  id: "modr-1",
  model: "omni-moderation-latest",
  results: [{ flagged: false, categories: {}, category_scores: {} }],
};

/** The document of `POST /v1/moderations`. */
export const moderationsDoc: CallDoc = {
  operationId: "createModeration",
  summary: "Create a moderation",
  description: "Needs no user and no balance: nothing is held, charged or recorded. The rate " +
    "limits of the key apply, and those of the user where the request names one.",
  body: {
    schema: moderationRequestSchema,
    examples: { text: { input: "Is this all right?" } },
  },
  answers: {
    200: responseDocs("The classification.", moderationSchema, { moderation }, freeCallHeaders),
  },
};
