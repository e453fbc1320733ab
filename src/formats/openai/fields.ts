import { badRequest } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { isCallersTool } from "./extras.ts";

/**
 * Fields that cost what no price covers: other models, tools that the upstream runs, searches,
 * service tiers. The function says which values of the field do.
 */
const unpricedFields = new Map(Object.entries<(value: unknown) => boolean>({
  models: isSet,
  fallbacks: isSet,
  // llama.cpp's, which takes precedence over `n`.
  n_cmpl: isSet,
  plugins: isSet,
  web_search_options: isSet,
  search_parameters: isSet,
  enable_search: (wish) => isSet(wish) && wish !== false,
  data_sources: isSet,
  compound_custom: isSet,
  audio: isSet,
  speed: (speed) => isSet(speed) && speed !== "standard",
  service_tier: (tier) => isSet(tier) && tier !== "auto" && tier !== "default",
  modalities: (list) => isSet(list) && JSON.stringify(list) !== '["text"]',
  tools: (list) => Array.isArray(list) && !list.every(isCallersTool),
}));

/** Whether a field is there and not null. */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Throws 400 for a field that costs what has no price, unless the project allows it. */
export function requirePricedFields(body: JsonObject, allowedFields: readonly string[]): void {
  for (const [field, costs] of unpricedFields) {
    if (!costs(body[field]) || allowedFields.includes(field)) continue;
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
    if (folded === name || !(names.includes(folded) || unpricedFields.has(folded))) continue;
    throw badRequest(
      name.slice(0, 64),
      `'${folded}' must be written in lower case.`,
      "unknown_parameter",
    );
  }
}
