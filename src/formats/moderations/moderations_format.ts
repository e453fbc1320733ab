import { z } from "zod";
import { userField } from "../../base/fields.ts";
import { parseWith } from "../../base/request.ts";
import type { FreeFormat } from "../../inference/free_call.ts";
import { requireExactNames } from "../openai/fields.ts";
import { requireKnown } from "../openai/known_fields.ts";

/** A request for a moderation. */
export const moderationRequestSchema = z.looseObject({
  model: z.string().min(1).max(256).nullish().meta({ description: "Default: the upstream's." }),
  input: z.union([
    z.string(),
    z.array(z.string()).min(1),
    z.array(z.looseObject({ type: z.string() })).min(1),
  ], { error: "must be a text, a list of texts, or a list of parts such as images" }),
  user: userField,
}).meta({ id: "ModerationRequest" });

const fieldNames = Object.keys(moderationRequestSchema.shape);
const known = new Set([...fieldNames, "safety_identifier"]);

/** OpenAI's moderations: https://platform.openai.com/docs/api-reference/moderations */
export const moderationsFormat: FreeFormat = {
  name: "moderations",
  upstreamPath: "/moderations",
  readRequest(body, policy) {
    requireExactNames(body, fieldNames);
    const { model } = parseWith(moderationRequestSchema, body);
    if (policy.unknown === "refuse") requireKnown(body, known, { policy, at: "" });
    // The endpoint has no field for the user.
    const { user, safety_identifier: identifier, ...passed } = body;
    return { model: model ?? null, user: user ?? identifier, body: passed };
  },
};
