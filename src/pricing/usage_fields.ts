import { isObject, type Json, type JsonObject, ownMember } from "../base/json.ts";
import type { SearchContextSize } from "./price_level.ts";

// Names by which servers report usage. `guides/usage.md` says whose they are.

/** Names of the prompt's count, in order of precedence. */
export const promptNames = [
  ...["prompt_tokens", "input_tokens", "promptTokenCount", "prompt_token_count"],
  ...["promptTokens", "inputTokens"],
];
/** Names of the response's count. */
export const completionNames = [
  ...["completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count"],
  ...["completionTokens", "outputTokens"],
];
/** Names of the sum. */
export const totalNames = ["total_tokens", "totalTokenCount", "total_token_count", "totalTokens"];
/** Google's reasoning, which its count of the response leaves out. */
const googleReasoning = ["thoughtsTokenCount", "thoughts_token_count"];
const reasoningNames = ["reasoning_tokens", "thinking_tokens", ...googleReasoning];
const promptDetails = ["prompt_tokens_details", "input_tokens_details", "input_token_details"];
const completionDetails = ["completion_tokens_details", "output_tokens_details"];

/** The first of these fields that is a count above zero, else zero where one is zero. */
export function firstCount(raw: JsonObject, names: readonly string[]): number | null {
  let zero: number | null = null;
  for (const name of names) {
    const count = countOf(raw[name]);
    if (count === null) continue;
    if (count > 0) return count;
    zero = count;
  }
  return zero;
}

/**
 * The counts of both sides and their sum, by any name: null for one that is not reported. Null
 * where a side has a value that is no count, such as a negative number.
 */
export function readSides(
  raw: JsonObject,
): { prompt: number | null; completion: number | null; total: number | null } | null {
  const prompt = firstCount(raw, promptNames);
  if (prompt === null && hasAnyValue(raw, promptNames)) return null;
  const completion = firstCount(raw, completionNames);
  if (completion === null && hasAnyValue(raw, completionNames)) return null;
  return { prompt, completion, total: firstCount(raw, totalNames) };
}

function hasAnyValue(raw: JsonObject, names: readonly string[]): boolean {
  return names.some((name) => (raw[name] ?? null) !== null);
}

/**
 * A report with its counts on top. Cohere has those that it bills in `billed_units`, and others in
 * `tokens`.
 */
export function flatReport(raw: JsonObject): JsonObject {
  const within = isObject(raw.billed_units) ? raw.billed_units : raw.tokens;
  return isObject(within) ? { ...raw, ...within } : raw;
}

/** Reasoning tokens; null where they are not reported. */
export function readReasoning(raw: JsonObject): number | null {
  return firstCount(detailsOf(raw, completionDetails), reasoningNames) ??
    firstCount(raw, reasoningNames);
}

/** Whether reasoning is reported by a name whose owner counts it beside the response. */
export function isReasoningBeside(raw: JsonObject): boolean {
  return firstCount(raw, googleReasoning) !== null;
}

/** Tokens of the prompt's cache. */
export interface CacheTokens {
  read: number;
  /** Of any life. */
  write: number;
  /** The tokens of `write` that are kept for an hour or longer. */
  hour: number;
  /** Reported as Anthropic does, whose prompt count leaves the cache out. */
  isAnthropic: boolean;
}

/** Reads what was read from the prompt's cache, and written to it. */
export function readCache(raw: JsonObject): CacheTokens {
  const details = detailsOf(raw, promptDetails);
  const lives = detailsOf(raw, ["cache_creation"]);
  const longer = detailsOf(details, ["cache_write_tokens_details"]);
  const hour = firstCount(lives, ["ephemeral_1h_input_tokens"]) ??
    firstCount(longer, ["ttl_12h_tokens", "ttl_1h_tokens"]) ?? 0;
  const byLife = (firstCount(lives, ["ephemeral_5m_input_tokens"]) ?? 0) + hour;
  const anthropicRead = countOf(raw.cache_read_input_tokens);
  const anthropicWrite = countOf(raw.cache_creation_input_tokens) ?? (byLife || null);
  // Zero under one name says nothing about another.
  const read = countOf(details.cached_tokens) ||
    firstCount(raw, otherCachedNames) || anthropicRead || 0;
  const write = firstCount(details, ["cache_write_tokens", "cache_creation_tokens"]) ||
    anthropicWrite || countOf(raw.cache_write_tokens) || 0;
  return { read, write, hour, isAnthropic: anthropicRead !== null || anthropicWrite !== null };
}

const otherCachedNames = [
  ...["prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens"],
  ...["cachedContentTokenCount", "cached_content_token_count"],
];

/** Every field that divides the prompt: one report's are about one partition of it. */
export const promptFields: ReadonlySet<string> = new Set([
  ...[...promptNames, ...promptDetails, ...otherCachedNames, "prompt_cache_miss_tokens"],
  ...["cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"],
  ...["cache_write_tokens", "promptTokensDetails", "cacheTokensDetails"],
]);

/** Tokens of sounds and images, those of the cache included in the input's. */
interface MediaTokens {
  audioInput: number;
  imageInput: number;
  cachedAudioInput: number;
  cachedImageInput: number;
  audioOutput: number;
  imageOutput: number;
}

/** Reads tokens of sounds and images from OpenAI's details or from Gemini's lists of modalities. */
export function readMedia(raw: JsonObject): MediaTokens {
  const input = detailsOf(raw, promptDetails);
  const cached = detailsOf(input, ["cached_tokens_details"]);
  const output = detailsOf(raw, completionDetails);
  const of = (details: JsonObject, name: string, list: string) =>
    countOf(details[`${name}_tokens`]) ?? modality(raw[list], name.toUpperCase());
  return {
    audioInput: of(input, "audio", "promptTokensDetails"),
    imageInput: of(input, "image", "promptTokensDetails"),
    cachedAudioInput: of(cached, "audio", "cacheTokensDetails"),
    cachedImageInput: of(cached, "image", "cacheTokensDetails"),
    audioOutput: of(output, "audio", "candidatesTokensDetails"),
    imageOutput: of(output, "image", "candidatesTokensDetails"),
  };
}

/** Gemini's details: `[{modality: "AUDIO", tokenCount: 25}]`. */
function modality(list: Json | undefined, name: string): number {
  if (!Array.isArray(list)) return 0;
  let sum = 0;
  for (const item of list) {
    if (isObject(item) && item.modality === name) sum += countOf(item.tokenCount) ?? 0;
  }
  return sum;
}

/** Objects that count calls of tools at the provider, by the tool's name. */
const toolCounts = [
  "server_tool_use",
  "server_side_tool_usage_details",
  "server_side_tool_usage",
  "tool_usage",
  "connectors",
];
const noCalls: Readonly<Record<string, number>> = {};
const callsMax = 10_000;

/**
 * Calls of tools that ran at the provider, by the tool's name: `web_search_requests`,
 * `SERVER_SIDE_TOOL_WEB_SEARCH` and Perplexity's `num_search_queries` are `web_search`; xAI's
 * `num_sources_used` is `source`.
 */
export function readToolCalls(raw: JsonObject): Readonly<Record<string, number>> {
  let calls: Record<string, number> | null = null;
  const add = (name: string, value: Json | undefined) => {
    const count = countOf(isObject(value) ? value.num_requests : value);
    if (count === null || count === 0) return;
    calls ??= {};
    calls[name] = Math.max(ownMember(calls, name) ?? 0, Math.min(count, callsMax));
  };
  for (const field of toolCounts) {
    const counts = raw[field];
    if (!isObject(counts)) continue;
    for (const [name, value] of Object.entries(counts)) add(toolName(name), value);
  }
  add("web_search", raw.num_search_queries);
  add("source", raw.num_sources_used);
  return calls ?? noCalls;
}

/** Tokens of a model that a tool at the provider has asked for images. */
export interface ToolImages {
  text: number;
  image: number;
  /** Of the images that it made. */
  output: number;
}

/**
 * Reads what OpenAI's image tool has used, which the counts of the usage leave out; null where it
 * has used nothing.
 */
export function readToolImages({ tool_usage: tools }: JsonObject): ToolImages | null {
  const used = isObject(tools) ? tools.image_gen ?? tools.image_generation : null;
  if (!isObject(used)) return null;
  const input = firstCount(used, promptNames) ?? 0;
  const output = firstCount(used, completionNames) ?? 0;
  const image = Math.min(input, countOf(detailsOf(used, promptDetails).image_tokens) ?? 0);
  return input + output > 0 ? { text: input - image, image, output } : null;
}

/** The name of a hosted tool without what versions and reports add to it. */
export function toolName(name: string): string {
  return name.toLowerCase().replace(/^server_side_tool_/, "")
    .replace(/_(requests|calls|queries|count)$/, "")
    .replace(/_(\d{8}|\d{4}_\d\d_\d\d|preview.*)$/, "")
    .slice(0, 64);
}

/** The size of a search's context, as Perplexity reports it. */
export function readSearchContext(raw: JsonObject): SearchContextSize | null {
  const size = raw.search_context_size;
  return size === "low" || size === "medium" || size === "high" ? size : null;
}

/** Places of inference that have no price of their own. */
const usualGeos = new Set(["", "global", "not_available"]);

/**
 * The tier that a report says has served its response: `fast` for Anthropic's fast mode, else a
 * service tier that is not the standard one, else the region of an inference that was bound to one,
 * which is dearer. `standard` where it names any of these, and none has a price of its own; null
 * where it names none.
 */
export function readTier(raw: JsonObject): string | null {
  const { speed, service_tier: sent, inference_geo: geo } = raw;
  if (speed === "fast") return "fast";
  const tier = tierName(sent);
  if (tier !== null && tier !== "standard") return tier;
  const region = tierName(geo);
  if (region !== null && !usualGeos.has(region)) return region;
  return tier ?? (tierName(speed) !== null || region !== null ? "standard" : null);
}

/** A service tier by its name in a body; null where that is none. */
export function tierName(value: Json | undefined): string | null {
  return typeof value === "string" && value !== "" && value.length <= 32
    ? value.toLowerCase()
    : null;
}

const ticksPerUnit = 10_000_000_000;
const statedMax = 1_000_000;

/**
 * The cost that a provider states, in 1e-12 currency units: OpenRouter's `cost`, Perplexity's
 * `cost.total_cost`, xAI's `cost_in_usd_ticks`, DeepInfra's `estimated_cost`. With a key of one's
 * own, OpenRouter's `cost` is its fee alone: what the key's provider asks is added. Zero states
 * nothing.
 */
export function readStatedCost(raw: JsonObject): bigint | null {
  const ticks = raw.cost_in_usd_ticks;
  const stated = isObject(raw.cost) ? raw.cost.total_cost : raw.cost;
  const value = typeof ticks === "number" ? ticks / ticksPerUnit : stated ?? raw.estimated_cost;
  return inParts(value) + ownKeyCost(raw) || null;
}

/** What the provider of the project's own key asks for a response; zero without such a key. */
function ownKeyCost({ is_byok: isOwnKey, cost_details: details }: JsonObject): bigint {
  return isOwnKey === true && isObject(details) ? inParts(details.upstream_inference_cost) : 0n;
}

function inParts(value: Json | undefined): bigint {
  if (typeof value !== "number" || !(value > 0)) return 0n;
  return BigInt(Math.min(value, statedMax).toFixed(12).replace(".", ""));
}

function detailsOf(raw: JsonObject, names: readonly string[]): JsonObject {
  for (const name of names) {
    const details = raw[name];
    if (isObject(details)) return details;
  }
  return noDetails;
}
const noDetails: JsonObject = {};

/** Sums of a few such counts are exact. */
const countMax = 1e12;

/**
 * A count that a server reports: a number of at least zero, rounded up. Above 1e12, which no
 * response has, it is 1e12. Null for anything else.
 */
export function countOf(value: Json | undefined): number | null {
  return typeof value === "number" && value >= 0 ? Math.min(Math.ceil(value), countMax) + 0 : null;
}
