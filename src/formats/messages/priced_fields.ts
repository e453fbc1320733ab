import { badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import type { ModelRequest, PriceCoverage } from "../../inference/model_request.ts";
import { isSet, requirePricedFields } from "../openai/fields.ts";
import { boundGeo } from "./request.ts";

type Costs = (value: Json, covers: PriceCoverage, body: JsonObject) => boolean;

/**
 * Fields that may cost what no price covers, besides those that chat has too. The function says
 * which values of the field do.
 */
const messagesPricedFields = Object.entries<Costs>({
  compaction: isSet,
  container: (value, { tool }) => isSet(value) && !tool("code_execution"),
  context_management: (value) => isObject(value) && hasCompaction(value.edits),
  inference_geo: (_value, { serviceTier }, body) => {
    const geo = boundGeo(body);
    // One price cannot be of two tiers.
    return geo !== null && (body.speed === "fast" || !serviceTier(geo));
  },
});

/** Whether edits summarize the conversation, by further calls of the model. */
function hasCompaction(edits: Json | undefined): boolean {
  return Array.isArray(edits) &&
    edits.some((edit) => isObject(edit) && !plainText(edit.type).startsWith("clear_"));
}

/** Throws 400 for a field that costs what has no price, unless the project allows it. */
export function requirePricedMessage(
  request: ModelRequest,
  covers: PriceCoverage,
  allowed: readonly string[],
): void {
  // Tools have been fitted to the price.
  const { tools: _, ...body } = request.body;
  requirePricedFields({ ...request, body }, covers, allowed);
  for (const [field, costs] of messagesPricedFields) {
    const value = body[field];
    if (value === undefined || !costs(value, covers, body) || allowed.includes(field)) continue;
    throw badRequest(
      field,
      `'${field}' is not supported here: it costs what this project has no price for.`,
      "unsupported_parameter",
    );
  }
}
