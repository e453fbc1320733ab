import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import type { ServedBy } from "../../inference/upstream_response.ts";
import type { LastReport } from "../../inference/upstream_response.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import {
  completionNames,
  countOf,
  firstCount,
  promptNames,
  readTier,
  toolName,
} from "../../pricing/usage_fields.ts";

/** The usage of a response that no model produced. */
export const noMessageUsage: JsonObject = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  cost: 0,
  cost_exact: "0",
};

/** Iterations whose tokens are billed, and which the counts beside them leave out. */
const billedBesides = new Set<unknown>(["compaction", "advisor_message"]);

/**
 * The billed tokens of a `usage` object, as `readUsage` reads them: with both sides, with the
 * iterations that its counts leave out, and without a total where it has both sides, since its
 * classes are disjoint.
 */
export function billedUsage(usage: JsonObject): JsonObject {
  if (usage.prompt_tokens !== undefined) return usage;
  const { total_tokens: total, ...counts } = usage;
  const isWhole = firstCount(usage, promptNames) && firstCount(usage, completionNames);
  if (total !== undefined && !isWhole) counts.total_tokens = total;
  const { cache_creation: lives, iterations } = usage;
  const written = isObject(lives)
    ? countIn(lives, "ephemeral_5m_input_tokens") + countIn(lives, "ephemeral_1h_input_tokens")
    : 0;
  const billed: JsonObject = {
    ...counts,
    input_tokens: countIn(usage, "input_tokens"),
    cache_creation_input_tokens: Math.max(countIn(usage, "cache_creation_input_tokens"), written),
    cache_read_input_tokens: countIn(usage, "cache_read_input_tokens"),
    output_tokens: countIn(usage, "output_tokens"),
  };
  for (const iteration of Array.isArray(iterations) ? iterations : []) {
    if (!isObject(iteration) || !billedBesides.has(iteration.type)) continue;
    for (const name of billedCounts) {
      billed[name] = countIn(billed, name) + countIn(iteration, name);
    }
  }
  // Our own count takes the place of a prompt that is not reported.
  if (billed.input_tokens === 0 && firstCount(usage, promptNames) === null) {
    delete billed.input_tokens;
  }
  return billed;
}

const billedCounts = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
];

function countIn(counts: JsonObject, name: string): number {
  return countOf(counts[name]) ?? 0;
}

/** The model and the tier of a message. */
export function messageServedBy({ model, usage }: JsonObject): ServedBy {
  return {
    model: typeof model === "string" && model !== "" ? model : null,
    tier: isObject(usage) ? readTier(usage) : null,
  };
}

const codeExecution = /^(code_execution|bash_code_execution|text_editor_code_execution)$/;

/** The hosted tool that a block is a successful result of; null for other blocks. */
export function calledTool({ type, content }: JsonObject): string | null {
  if (typeof type !== "string" || !type.endsWith("_tool_result")) return null;
  const name = toolName(type.slice(0, -"_tool_result".length));
  if (codeExecution.test(name)) return "code_execution";
  const isError = isObject(content) && plainText(content.type).endsWith("_error");
  return isError || name.startsWith("tool_search") ? null : name;
}

/** A usage object with calls of hosted tools that it does not report itself. */
export function withToolCalls(usage: JsonObject, blocks: readonly JsonObject[]): JsonObject {
  const reported = isObject(usage.server_tool_use) ? usage.server_tool_use : {};
  const seen: Record<string, number> = {};
  for (const block of blocks) {
    const name = calledTool(block);
    if (name === null || `${name}_requests` in reported) continue;
    seen[`${name}_requests`] = (seen[`${name}_requests`] ?? 0) + 1;
  }
  for (const _ in seen) return { ...usage, server_tool_use: { ...reported, ...seen } };
  return usage;
}

/**
 * `usage` in Anthropic's shape, whose classes are disjoint: the upstream's own object where it is
 * what was charged, else with our counts in it. `cost` is a number in currency units, and
 * `cost_exact` the same as a decimal string.
 */
export function messageUsage(
  usage: TokenUsage,
  { reported, cost }: { reported: LastReport | null; cost: string },
): JsonObject {
  const charged = { cost: Number(cost), cost_exact: cost };
  const { cachedInput, cachedAudioInput, cachedImageInput, cacheWrite, cacheWriteHour } = usage;
  const read = cachedInput + cachedAudioInput + cachedImageInput;
  const written = cacheWrite + cacheWriteHour;
  const counted: JsonObject = {
    input_tokens: inputTokensOf(usage) - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: outputTokensOf(usage),
  };
  if (usage.source === "provider" && reported?.isWhole) {
    return { ...counted, ...withAnthropicsTier(reported.usage), ...charged };
  }
  const { cache_creation: _lives, iterations: _, ...rest } = reported?.usage ?? {};
  return { ...withAnthropicsTier(rest), ...counted, ...charged };
}

/** Other servers' names of the standard tier. */
const standardTiers = new Set<unknown>(["default", "auto", "standard_only", "on_demand"]);
const anthropicTiers = new Set<unknown>(["standard", "priority", "batch"]);

/** The usage with the tier in Anthropic's words; null where it has none for another server's. */
function withAnthropicsTier(usage: JsonObject): JsonObject {
  const { service_tier: tier } = usage;
  if (tier === undefined || tier === null || anthropicTiers.has(tier)) return usage;
  return { ...usage, service_tier: standardTiers.has(tier) ? "standard" : null };
}

/**
 * What a report says of a refusal before any output: Anthropic bills nothing of it, whatever it
 * counts. A server that bills it says `billed: true`.
 */
const unbilled: JsonObject = { billed: false };

/** A usage object of a message, by whether it is a refusal without content. */
export function billedUnlessRefused(
  usage: JsonObject | null,
  { reason, hasContent }: { reason: unknown; hasContent: boolean },
): JsonObject | null {
  if (reason !== "refusal" || hasContent) return usage;
  return { ...unbilled, ...usage };
}

/** The usage object of a value; null where it has none. */
export function usageOf(value: Json | undefined): JsonObject | null {
  return isObject(value) && isObject(value.usage) ? value.usage : null;
}
