import { isObject, type JsonObject } from "../base/json.ts";
import { inputTokensOf, type TokenCounts, tokenCounts } from "../base/token_classes.ts";

/** Tokens of one response, and who counted them. */
export interface TokenUsage extends TokenCounts {
  source: "provider" | "estimated";
}

/** The most tokens that are plausible. A provider that reports more is not believed. */
export interface PlausibleUsage {
  input: number;
  output: number;
}

// Templates, media and tokenizers differ, and not every server counts hidden reasoning against the
// cap. Reports up to this much above the request are believed.
const roomFactor = 2;
const inputRoom = 2_000;
const outputRoom = 32_768;

/** The most that is plausible for a prompt with this bound and an output with this cap. */
export function plausibleUsage(promptBound: number, outputCap: number): PlausibleUsage {
  return {
    input: promptBound * roomFactor + inputRoom,
    output: outputCap * roomFactor + outputRoom,
  };
}

/** Usage by our own count, of which only input and output are known. */
export function estimatedUsage(input: number, output: number, reasoning = 0): TokenUsage {
  return { ...tokenCounts({ uncachedInput: input, output, reasoning }), source: "estimated" };
}

/**
 * Reads a provider's `usage` as a partition. Null when it is missing or implausible: negative,
 * fractional, not a number, too large. A part larger than its whole is cut to it, so that nothing
 * is billed twice. Zero is a valid count.
 */
export function readUsage(raw: unknown, most: PlausibleUsage): TokenUsage | null {
  const written = readOutput(raw, most);
  if (!isObject(raw) || !written) return null;
  const input = readInput(raw);
  if (!input) return null;
  const counts = tokenCounts({ ...input, ...written });
  return inputTokensOf(counts) > most.input ? null : { ...counts, source: "provider" };
}

type InputTokens = Pick<TokenUsage, "uncachedInput" | "cachedInput" | "cacheWrite">;

function readInput(raw: JsonObject): InputTokens | null {
  const prompt = tokens(raw.prompt_tokens);
  if (prompt === null) return null;
  const beside = besidePrompt(raw);
  if (beside) return { uncachedInput: prompt, ...beside };
  const input = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
  const cached = tokens(input.cached_tokens) ?? tokens(raw.prompt_cache_hit_tokens) ??
    tokens(raw.cached_tokens) ?? tokens(raw.cache_read_input_tokens) ?? 0;
  const added = tokens(input.cache_write_tokens) ?? tokens(raw.cache_creation_input_tokens) ?? 0;
  const cachedInput = Math.min(cached, prompt);
  const cacheWrite = Math.min(added, prompt - cachedInput);
  return { uncachedInput: prompt - cachedInput - cacheWrite, cachedInput, cacheWrite };
}

/**
 * Cache reads and writes that a provider counts beside the prompt tokens, as Anthropic does and
 * routers that pass its counts on: their total includes them. Null where the prompt includes them.
 */
function besidePrompt(raw: JsonObject): Omit<InputTokens, "uncachedInput"> | null {
  const cachedInput = tokens(raw.cache_read_input_tokens) ?? 0;
  const cacheWrite = tokens(raw.cache_creation_input_tokens) ?? 0;
  const counted = (tokens(raw.prompt_tokens) ?? 0) + (tokens(raw.completion_tokens) ?? 0);
  const whole = counted + cachedInput + cacheWrite;
  return whole > counted && (tokens(raw.total_tokens) ?? 0) >= whole
    ? { cachedInput, cacheWrite }
    : null;
}

/** The output part of a provider's `usage`, also where its prompt part is implausible. */
export function readOutput(
  raw: unknown,
  most: PlausibleUsage,
): Pick<TokenUsage, "output" | "reasoning"> | null {
  if (!isObject(raw)) return null;
  const prompt = tokens(raw.prompt_tokens);
  const completion = tokens(raw.completion_tokens);
  if (prompt === null || completion === null) return null;
  const hidden = hiddenOutput(raw, prompt + completion);
  const output = completion + hidden;
  if (output > most.output) return null;
  const parts = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
  return { output, reasoning: Math.min(tokens(parts.reasoning_tokens) ?? hidden, output) };
}

/**
 * Reasoning that a provider counts beside the completion tokens, as xAI and Gemini do; OpenAI
 * counts it inside. The total reveals it. Cache tokens beside the prompt are not output.
 */
function hiddenOutput(raw: JsonObject, counted: number): number {
  const beside = (tokens(raw.cache_creation_input_tokens) ?? 0) +
    (tokens(raw.cache_read_input_tokens) ?? 0);
  return Math.max(0, (tokens(raw.total_tokens) ?? 0) - counted - beside);
}

function tokens(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isInteger(value)) return null;
  return value >= 0 ? value : null;
}
