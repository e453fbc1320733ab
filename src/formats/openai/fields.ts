import { badRequest } from "../../base/errors.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { ModelRequest, PriceCoverage } from "../../inference/model_request.ts";
import { toolName } from "../../pricing/usage_fields.ts";
import { isCallersTool } from "./extras.ts";

/** Tiers that cost the standard price, by the names that providers have for it. */
const standardTiers = new Set(["auto", "default", "standard", "standard_only", "on_demand"]);

type Costs = (value: unknown, covers: PriceCoverage) => boolean;

/**
 * Fields that may cost what no price covers: other models, tools that the upstream runs, searches,
 * service tiers. The function says which values of the field do.
 */
const pricedFields = new Map(Object.entries<Costs>({
  models: isSet,
  fallbacks: isSet,
  // llama.cpp's, which takes precedence over `n`.
  n_cmpl: isSet,
  data_sources: isSet,
  compound_custom: isSet,
  plugins: (list, { tool }) =>
    isSet(list) &&
    !(Array.isArray(list) &&
      list.every((plugin) => isObject(plugin) && plugin.id === "web" && tool("web_search"))),
  web_search_options: (options, { tool, request }) =>
    isSet(options) && !tool("web_search") && !request,
  search_parameters: (options, { tool }) => isSet(options) && !tool("source"),
  enable_search: (wish, { tool }) => isSet(wish) && wish !== false && !tool("web_search"),
  audio: (options, { field }) => isSet(options) && !field("audioOutput"),
  speed: (speed, { serviceTier }) =>
    isSet(speed) && speed !== "standard" && !(typeof speed === "string" && serviceTier(speed)),
  service_tier: (tier, { serviceTier }) =>
    isSet(tier) && !(typeof tier === "string" &&
      (standardTiers.has(tier) || serviceTier(tier.toLowerCase()))),
  modalities: (list, { field }) =>
    isSet(list) &&
    !(Array.isArray(list) && list.every((modality) =>
      modality === "text" || (modality === "audio" && field("audioOutput")) ||
      (modality === "image" && field("imageOutput"))
    )),
  tools: (list, { tool }) =>
    Array.isArray(list) &&
    !list.every((each) =>
      isCallersTool(each) ||
      (isObject(each) && typeof each.type === "string" && tool(toolName(each.type)))
    ),
}));

/**
 * Takes out ids of the upstream's own engine: two requests with the same one disturb each other in
 * vLLM (`request_id`) and SGLang (`rid`), and callers could name each other's.
 */
export function withoutEngineIds(body: Partial<JsonObject>): Partial<JsonObject> {
  if (body.request_id !== undefined) body.request_id = undefined;
  if (body.rid !== undefined) body.rid = undefined;
  return body;
}

/** Whether a field is there and not null. */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Throws 400 for a field that costs what has no price, unless the project allows it. */
export function requirePricedFields(
  { body }: ModelRequest,
  covers: PriceCoverage,
  allowedFields: readonly string[],
): void {
  for (const [field, costs] of pricedFields) {
    const value = body[field];
    if (value === undefined || !costs(value, covers) || allowedFields.includes(field)) continue;
    throw badRequest(
      field,
      `'${field}' is not supported here: it costs what this project has no price for.`,
      "unsupported_parameter",
    );
  }
}

/**
 * Throws 400 for a known name in other letter case. Some servers take `Model` for `model`, as Go's
 * JSON does: what was priced would not be what they read.
 */
export function requireExactNames(body: JsonObject, names: readonly string[]): void {
  for (const name of Object.keys(body)) {
    const folded = name.toUpperCase().toLowerCase();
    if (folded === name || !(names.includes(folded) || pricedFields.has(folded))) continue;
    throw badRequest(
      name.slice(0, 64),
      `'${folded}' must be written in lower case.`,
      "unknown_parameter",
    );
  }
}
