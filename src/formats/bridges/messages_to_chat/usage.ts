import type { JsonObject } from "../../../base/json.ts";
import { readUsage } from "../../../pricing/usage.ts";

/** Fields of a usage besides tokens that decide a price. */
const priceFields = [
  ...["server_tool_use", "server_side_tool_usage_details", "server_side_tool_usage", "tool_usage"],
  ...["connectors", "num_search_queries", "num_sources_used", "search_context_size"],
  ...["service_tier", "speed", "cost", "cost_in_usd_ticks", "estimated_cost"],
  ...["is_byok", "cost_details"],
];

/**
 * A chat server's `usage` with Anthropic's names, whose classes do not overlap. It reads as the
 * same tokens in the same classes. Null for one that reports nothing. `tier` is the service tier
 * that the response names beside it.
 */
export function toMessagesUsage(raw: JsonObject, tier: string | null): JsonObject | null {
  const usage = readUsage(raw);
  if (!usage) return null;
  const { counts, reasoning, unassigned } = usage;
  const { cacheWrite, cacheWriteHour, cachedAudioInput, cachedImageInput, citation } = counts;
  const output = counts.output + counts.audioOutput + counts.imageOutput;
  // Perplexity, the only one that counts citations, counts its reasoning beside its output.
  const beside = citation > 0 ? reasoning ?? 0 : 0;
  return {
    ...pick(raw, priceFields),
    ...(tier === null ? {} : { service_tier: tier }),
    input_tokens: counts.uncachedInput + counts.audioInput + counts.imageInput,
    cache_creation_input_tokens: cacheWrite + cacheWriteHour,
    cache_read_input_tokens: counts.cachedInput + cachedAudioInput + cachedImageInput,
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWrite,
      ephemeral_1h_input_tokens: cacheWriteHour,
    },
    ...inputDetails(counts),
    output_tokens: output - beside,
    ...outputDetails(counts, reasoning),
    ...(citation > 0 ? { citation_tokens: citation } : {}),
    ...(unassigned > 0 ? { total_tokens: unassigned } : {}),
  };
}

/** The usage of a message that has ended so. Chat servers bill the prompt of what they refuse. */
export function billedUsageOf(
  usage: JsonObject | null,
  { stop_reason: reason }: { stop_reason: string },
): JsonObject | null {
  return reason === "refusal" ? { ...usage, billed: true } : usage;
}

type Counts = NonNullable<ReturnType<typeof readUsage>>["counts"];

/** Anthropic has no details of its input: sounds and images are named as OpenAI names them. */
function inputDetails(
  { audioInput, imageInput, cachedAudioInput, cachedImageInput }: Counts,
): JsonObject {
  const audio = audioInput + cachedAudioInput;
  const image = imageInput + cachedImageInput;
  if (audio + image === 0) return {};
  return {
    input_tokens_details: {
      audio_tokens: audio,
      image_tokens: image,
      cached_tokens_details: { audio_tokens: cachedAudioInput, image_tokens: cachedImageInput },
    },
  };
}

function outputDetails(
  { audioOutput, imageOutput }: Counts,
  reasoning: number | null,
): JsonObject {
  const details = {
    ...(reasoning === null ? {} : { thinking_tokens: reasoning }),
    ...(audioOutput > 0 ? { audio_tokens: audioOutput } : {}),
    ...(imageOutput > 0 ? { image_tokens: imageOutput } : {}),
  };
  return Object.keys(details).length > 0 ? { output_tokens_details: details } : {};
}

function pick(from: JsonObject, names: readonly string[]): JsonObject {
  const picked: JsonObject = {};
  for (const name of names) {
    const value = from[name];
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
}
