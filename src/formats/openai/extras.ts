import { isObject, type JsonObject } from "../../base/json.ts";
import type { RequestExtras } from "../../inference/model_request.ts";
import { toolName } from "../../pricing/usage_fields.ts";

/** The extras of a request that asks for nothing of the kind. */
export const noRequestExtras: RequestExtras = {
  serviceTier: null,
  modalities: null,
  hostedTools: [],
  maxToolCalls: null,
  searchContext: null,
  hourCache: false,
};

/** Reads what a body asks for that may have a price of its own. */
export function readExtras(body: JsonObject): RequestExtras {
  const { tools, modalities, max_tool_calls: bound, web_search_options: search } = body;
  const serviceTier = requestedTier(body);
  const hosted = Array.isArray(tools) ? tools.filter((tool) => !isCallersTool(tool)) : [];
  const asksSearch = isObject(search);
  const hourCache = isLong(body.cache_control) || hasHourCache(body);
  const isPlain = serviceTier === null && hosted.length === 0 && !asksSearch && !hourCache &&
    modalities === undefined && bound === undefined;
  if (isPlain) return noRequestExtras;
  const names = hosted.map((tool) =>
    isObject(tool) && typeof tool.type === "string" ? toolName(tool.type) : ""
  );
  return {
    serviceTier,
    modalities: Array.isArray(modalities)
      ? modalities.filter((name) => typeof name === "string")
      : null,
    hostedTools: asksSearch ? [...names, "web_search"] : names,
    maxToolCalls: boundOf(bound) ?? usesOf(hosted),
    searchContext: asksSearch ? sizeOf(search.search_context_size) : null,
    hourCache,
  };
}

/** Whether the caller runs a tool. Other tools are run and charged by the upstream. */
export function isCallersTool(tool: unknown): boolean {
  if (!isObject(tool)) return true;
  return tool.type === undefined
    ? tool.function !== undefined && tool.function !== null
    : callersTools.has(tool.type);
}
const callersTools = new Set<unknown>(["function", "custom"]);

/** The service tier that a body asks for; null where it leaves it to the provider. */
export function requestedTier({ service_tier: tier, speed }: JsonObject): string | null {
  if (typeof speed === "string" && speed !== "standard") return speed.toLowerCase();
  return typeof tier === "string" ? tier.toLowerCase() : null;
}

/** The most calls that Anthropic's `max_uses` allows; null where a tool has no bound. */
function usesOf(tools: readonly unknown[]): number | null {
  let sum = 0;
  for (const tool of tools) {
    const uses = isObject(tool) ? boundOf(tool.max_uses) : null;
    if (uses === null) return null;
    sum += uses;
  }
  return tools.length > 0 ? sum : null;
}

function boundOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function sizeOf(value: unknown): RequestExtras["searchContext"] {
  return value === "low" || value === "medium" || value === "high" ? value : null;
}

/** Whether a message or one of its parts asks for a cache entry that is kept for an hour. */
function hasHourCache({ messages }: JsonObject): boolean {
  if (!Array.isArray(messages)) return false;
  for (const message of messages) {
    if (!isObject(message)) continue;
    if (isLong(message.cache_control)) return true;
    if (!Array.isArray(message.content)) continue;
    for (const part of message.content) {
      if (isObject(part) && isLong(part.cache_control)) return true;
    }
  }
  return false;
}

function isLong(control: unknown): boolean {
  return isObject(control) && typeof control.ttl === "string" && control.ttl !== "5m";
}

/** Whether a field of vLLM or llama.cpp requires JSON. */
export function requiresJsonElsewhere(
  { guided_json: guided, structured_outputs: structured, json_schema: schema }: JsonObject,
): boolean {
  const asked = isObject(structured) ? structured.json ?? structured.json_object : null;
  return [guided, schema, asked].some((one) => one !== undefined && one !== null && one !== false);
}
