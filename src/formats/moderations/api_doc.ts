import { z } from "zod";
import { responseDocs } from "../../base/endpoint_doc.ts";
import { callApiDoc, rateHeaderFields } from "../../inference/api_doc.ts";
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

/** `POST /v1/moderations`. */
export const moderationsApiDoc = callApiDoc("/moderations", {
  operationId: "createModeration",
  summary: "Create a moderation",
  description: "Needs no user and no balance: nothing is held, charged or recorded. The rate " +
    "limits of the key apply, and those of the user where the request names one.",
  body: {
    schema: moderationRequestSchema,
    examples: { text: { input: "Is this all right?" } },
  },
  isFree: true,
  answers: {
    200: responseDocs("The classification.", moderationSchema, { moderation }, rateHeaderFields),
  },
});
