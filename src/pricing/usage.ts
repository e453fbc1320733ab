import { isObject, type JsonObject } from "../base/json.ts";
import { inputTokensOf, type TokenCounts, tokenCounts } from "../base/token_classes.ts";

/** Tokens of one response, and who counted them. */
export interface TokenUsage extends TokenCounts {
  source: "provider" | "estimated";
}

/** More tokens than these are a fault of the server that reports them, and not believed. */
export interface PlausibleUsage {
  input: number;
  output: number;
}

// Templates, media and tokenizers differ, and not every server counts hidden reasoning against the
// cap: so much more than what was asked for is believed, but no more.
const roomFactor = 2;
const inputRoom = 2_000;
const outputRoom = 32_768;

/** What may be believed of an answer to a prompt of that bound, capped at so many tokens. */
export function plausibleUsage(promptBound: number, outputCap: number): PlausibleUsage {
  return {
    input: promptBound * roomFactor + inputRoom,
    output: outputCap * roomFactor + outputRoom,
  };
}

/** Usage of which we know only how much went in and came out. */
export function estimatedUsage(input: number, output: number, reasoning = 0): TokenUsage {
  return { ...tokenCounts({ uncachedInput: input, output, reasoning }), source: "estimated" };
}

/**
 * A provider's `usage` as a partition, or null when it is missing or absurd (negative, fractional,
 * not a number, more than plausible). Parts larger than their whole are cut to it, so nothing is
 * billed twice. Zero is a count like any other.
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
 * What a server counts beside the prompt that it read from a cache or wrote to one, as Anthropic does
 * and some that pass its counts on: their total says so. Null where the prompt has it all.
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

/** What a provider's `usage` says of the output, also where what it says of the prompt is absurd. */
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
 * Thoughts that a server counts beside the answer's tokens (xAI, Gemini), where OpenAI counts them
 * within: its total says so. What it wrote to or read from a cache beside the prompt is no output.
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
