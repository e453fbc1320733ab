import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { type TokenCounts, tokenCounts } from "../base/token_classes.ts";

/** Tokens of one response, and who counted them. */
export interface TokenUsage extends TokenCounts {
  source: "provider" | "estimated";
}

/** What a provider's report is believed up to, and what was held for the call. */
export interface PlausibleUsage {
  input: number;
  output: number;
  /** Input besides the prompt, which tools at the provider read. No hold can foresee it. */
  toolInput: number;
  /** The prompt's bound and the output cap that the hold was computed with. */
  held: { input: number; output: number };
}

// Templates, media and tokenizers differ, and not every server counts hidden reasoning against the
// cap. Reports up to this much above the request are believed.
const marginFactor = 2;
const inputMargin = 2_000;
const outputMargin = 32_768;
const toolInputMax = 1_000_000;

/** Returns the most that is plausible for a prompt with this bound and an output with this cap. */
export function plausibleUsage(promptBound: number, outputCap: number): PlausibleUsage {
  return {
    input: promptBound * marginFactor + inputMargin,
    output: outputCap * marginFactor + outputMargin,
    toolInput: toolInputMax,
    held: { input: promptBound, output: outputCap },
  };
}

/** A provider's report as a partition: no token is in two classes. */
export interface ReportedUsage {
  counts: TokenCounts;
  /** Whether each side is plausible for the call. */
  plausible: { input: boolean; output: boolean };
}

/**
 * Reads a provider's `usage` as a partition; `guides/usage.md` describes the known shapes. Null
 * when it reports nothing: it is not an object, the prompt or the completion is not a whole number
 * of at least zero, or every count is zero.
 */
export function readUsage(raw: unknown, most: PlausibleUsage): ReportedUsage | null {
  if (!isObject(raw)) return null;
  const prompt = firstCount(raw, promptNames);
  const completion = firstCount(raw, completionNames);
  if (prompt === null || completion === null) return null;
  const cache = readCache(raw);
  const reasoning = firstCount(detailsOf(raw, completionDetails), reasoningNames) ??
    firstCount(raw, reasoningNames);
  const total = firstCount(raw, totalNames);
  const surplus = (total ?? 0) - prompt - completion;
  const isNative = total === null && raw.prompt_tokens === undefined && cache.isAnthropic;
  const isBeside = isNative || isCacheBeside(cache, { prompt, surplus, reasoning });
  const besides = isBeside ? cache.read + cache.write : 0;
  const cached = isBeside ? { ...cache, prompt } : within(prompt, cache);
  const hidden = hiddenTokens(reasoning, { completion, surplus: surplus - besides });
  const output = completion + hidden.output;
  if (prompt + besides + hidden.input + output === 0) return null;
  const counts = tokenCounts({
    uncachedInput: cached.prompt + hidden.input,
    cachedInput: cached.read,
    cacheWrite: cached.write,
    output,
    reasoning: Math.min(reasoning ?? hidden.output, output),
  });
  return {
    counts,
    plausible: {
      input: prompt + besides <= most.input && hidden.input <= most.toolInput,
      output: output <= most.output,
    },
  };
}

const promptNames = ["prompt_tokens", "input_tokens", "promptTokenCount"];
const completionNames = ["completion_tokens", "output_tokens", "candidatesTokenCount"];
const totalNames = ["total_tokens", "totalTokenCount"];
const reasoningNames = ["reasoning_tokens", "thinking_tokens", "thoughtsTokenCount"];
const promptDetails = ["prompt_tokens_details", "input_tokens_details"];
const completionDetails = ["completion_tokens_details", "output_tokens_details"];

interface CacheTokens {
  read: number;
  write: number;
  /** Reported as Anthropic does, whose prompt count leaves the cache out. */
  isAnthropic: boolean;
}

function readCache(raw: JsonObject): CacheTokens {
  const details = detailsOf(raw, promptDetails);
  const lives = isObject(raw.cache_creation) ? raw.cache_creation : {};
  const byLife = (tokens(lives.ephemeral_5m_input_tokens) ?? 0) +
    (tokens(lives.ephemeral_1h_input_tokens) ?? 0);
  const anthropicRead = tokens(raw.cache_read_input_tokens);
  const anthropicWrite = tokens(raw.cache_creation_input_tokens) ?? (byLife || null);
  const read = tokens(details.cached_tokens) ??
    firstCount(raw, otherCachedNames) ?? anthropicRead ?? 0;
  const write = firstCount(details, ["cache_write_tokens", "cache_creation_tokens"]) ??
    anthropicWrite ?? tokens(raw.cache_write_tokens) ?? 0;
  return { read, write, isAnthropic: anthropicRead !== null || anthropicWrite !== null };
}

const otherCachedNames = [
  "prompt_cache_hit_tokens",
  "cached_tokens",
  "num_cached_tokens",
  "cachedContentTokenCount",
];

/**
 * Whether cache reads and writes are counted beside the prompt, as Anthropic counts them and
 * routers that pass its counts on. Both readings occur with the same names: arithmetic decides.
 */
function isCacheBeside(
  { read, write, isAnthropic }: CacheTokens,
  { prompt, surplus, reasoning }: { prompt: number; surplus: number; reasoning: number | null },
): boolean {
  const cached = read + write;
  if (cached === 0) return false;
  if (read > prompt || write > prompt) return true;
  if (surplus > 0 && surplus === reasoning) return false;
  if (surplus === cached || surplus === cached + (reasoning ?? 0)) return true;
  return isAnthropic && (cached > prompt || surplus > cached);
}

/** Details that together exceed the prompt are cut to it: no token is paid twice. */
function within(prompt: number, cache: CacheTokens) {
  const read = Math.min(cache.read, prompt);
  const write = Math.min(cache.write, prompt - read);
  return { prompt: prompt - read - write, read, write };
}

/**
 * Tokens that only the total reveals. Reasoning that does not fit into the completion, or that the
 * surplus covers, was counted beside it (xAI, Gemini): it is output. The rest of a surplus is
 * input, such as prompts of tools that ran at the provider. A surplus without any report of
 * reasoning is hidden output, as from Gemini.
 */
function hiddenTokens(
  reasoning: number | null,
  { completion, surplus }: { completion: number; surplus: number },
): { input: number; output: number } {
  const left = Math.max(0, surplus);
  if (reasoning === null) return { input: 0, output: left };
  const isBeside = left >= reasoning || reasoning > completion;
  const output = isBeside ? Math.min(left, reasoning) : 0;
  return { input: left - output, output };
}

function detailsOf(raw: JsonObject, names: readonly string[]): JsonObject {
  for (const name of names) {
    const details = raw[name];
    if (isObject(details)) return details;
  }
  return {};
}

/** The first of these fields that is a count. */
function firstCount(raw: JsonObject, names: readonly string[]): number | null {
  for (const name of names) {
    const count = tokens(raw[name]);
    if (count !== null) return count;
  }
  return null;
}

function tokens(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
