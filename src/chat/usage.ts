import { isObject } from "../base/json.ts";

/** Tokens of one answer. The input classes never overlap; reasoning is inside the output. */
export interface TokenUsage {
  uncachedInput: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
  source: "provider" | "estimated";
}

/** More tokens than these are a fault of the server that reports them, and not believed. */
export interface Plausible {
  input: number;
  output: number;
}

// Templates, media and tokenizers differ, and not every server counts hidden reasoning against the
// cap: so much more than what was asked for is believed, but no more.
const roomFactor = 2;
const inputRoom = 2_000;
const outputRoom = 32_768;

/** What may be believed of an answer to a prompt of that bound, capped at so many tokens. */
export function plausibleUsage(promptBound: number, outputCap: number): Plausible {
  return {
    input: promptBound * roomFactor + inputRoom,
    output: outputCap * roomFactor + outputRoom,
  };
}

/** Usage of which we know only how much went in and came out. */
export function estimatedUsage(input: number, output: number): TokenUsage {
  return {
    uncachedInput: input,
    cachedInput: 0,
    cacheWrite: 0,
    output,
    reasoning: 0,
    source: "estimated",
  };
}

/**
 * A provider's `usage` as a partition, or null when it is missing or absurd (negative, fractional,
 * not a number, more than plausible). Parts larger than their whole are cut to it, so nothing is billed twice. Zero is a
 * count like any other.
 */
export function readUsage(raw: unknown, most: Plausible): TokenUsage | null {
  if (!isObject(raw)) return null;
  const prompt = tokens(raw.prompt_tokens);
  const output = tokens(raw.completion_tokens);
  if (prompt === null || output === null) return null;
  if (prompt > most.input || output > most.output) return null;
  const input = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
  const outputParts = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
  const cached = tokens(input.cached_tokens) ?? tokens(raw.prompt_cache_hit_tokens) ?? 0;
  const written = tokens(input.cache_write_tokens) ?? tokens(raw.cache_creation_input_tokens) ?? 0;
  const cachedInput = Math.min(cached, prompt);
  const cacheWrite = Math.min(written, prompt - cachedInput);
  return {
    uncachedInput: prompt - cachedInput - cacheWrite,
    cachedInput,
    cacheWrite,
    output,
    reasoning: Math.min(tokens(outputParts.reasoning_tokens) ?? 0, output),
    source: "provider",
  };
}

function tokens(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isInteger(value)) return null;
  return value >= 0 ? value : null;
}

/** All input tokens, whatever their class. */
export function inputOf(usage: TokenUsage): number {
  return usage.uncachedInput + usage.cachedInput + usage.cacheWrite;
}
