import { userIn } from "../../base/user_id.ts";
import { endpoints } from "../../base/endpoints.ts";
import { z } from "zod";
import { modelName, userField } from "../../base/fields.ts";
import { isObject } from "../../base/json.ts";
import { parseWith } from "../../base/request.ts";
import type { FreeFormat } from "../../inference/free_call.ts";
import { requireExactNames } from "../openai/fields.ts";
import { requireKnown } from "../openai/known_fields.ts";
import { requireNoStoredFields, requireNothingStored } from "../openai/stored_things.ts";

/** A request for a moderation. */
export const moderationRequestSchema = z.looseObject({
  model: modelName.nullish().meta({ description: "Default: the upstream's." }),
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
  kind: "free",
  ...endpoints.moderations,
  readRequest(body, policy) {
    requireExactNames(body, fieldNames);
    const { model } = parseWith(moderationRequestSchema, body);
    if (policy.unknown === "refuse") requireKnown(body, known, { policy, at: "" });
    requireNoStoredFields(body, policy.allowed);
    for (const [index, part] of Array.isArray(body.input) ? body.input.entries() : []) {
      if (isObject(part)) {
        requireNothingStored(part, { at: `input.${index}`, allowed: policy.allowed });
      }
    }
    // The endpoint has no field for the user.
    const { user: _user, safety_identifier: _identifier, ...passed } = body;
    return { model: model ?? null, user: userIn(body), body: passed };
  },
};
