import { isObject, type JsonObject } from "../base/json.ts";
import { type TokenCounts, tokenCounts } from "../base/token_classes.ts";
import type { SearchContextSize } from "./price_level.ts";
import {
  type CacheTokens,
  completionNames,
  firstCount,
  flatReport,
  isReasoningBeside,
  promptNames,
  readCache,
  readMedia,
  readReasoning,
  readSearchContext,
  readSides,
  readStatedCost,
  readTier,
  readToolCalls,
  readToolImages,
  type ToolImages,
  totalNames,
} from "./usage_fields.ts";

/** Tokens of one response, and who counted them. */
export interface TokenUsage extends TokenCounts {
  source: "provider" | "estimated";
}

/** A provider's report as a partition: no token is in two classes. */
export interface ReportedUsage {
  counts: TokenCounts;
  /** Reasoning tokens; null where it does not say whether there were any. */
  reasoning: number | null;
  /** Input tokens besides the prompt, which tools at the provider read. */
  toolInput: number;
  /** Whether it counts sources that were read to answer. */
  hasCitations: boolean;
  /** Tokens of which it does not say whether they are of the prompt or of the response. */
  unassigned: number;
  /** Whether it says how many tokens the prompt has, and not only of parts of it. */
  saysInput: boolean;
  /** Whether it says how many tokens the response has. */
  saysOutput: boolean;
  /** Whether its own numbers are what was read: none was rounded, or found by its total. */
  isExact: boolean;
}

/** The fields of a provider's `usage`, besides tokens, that change the price of its response. */
export interface ReportedExtras {
  /** Calls of tools at the provider, by the tool's name. */
  toolCalls: Readonly<Record<string, number>>;
  searchContext: SearchContextSize | null;
  serviceTier: string | null;
  /** The cost that it states, in 1e-12 currency units. */
  statedCost: bigint | null;
  /** Tokens of images that a tool made, which the counts leave out. */
  toolImages: ToolImages | null;
}

/** Reads what a `usage` object says besides tokens. */
export function readReportedExtras(raw: JsonObject): ReportedExtras {
  return {
    toolCalls: readToolCalls(raw),
    searchContext: readSearchContext(raw),
    serviceTier: readTier(raw),
    statedCost: readStatedCost(raw),
    toolImages: readToolImages(raw),
  };
}

/**
 * Reads a provider's `usage` as a partition; `guides/usage.md` describes the known shapes. A half
 * that is missing, or zero, comes from the total, and is zero without one. Null when it reports
 * nothing: it is not an object, a half is not a number of at least zero, or every count is zero.
 */
export function readUsage(sent: unknown): ReportedUsage | null {
  if (!isObject(sent)) return null;
  const raw = flatReport(sent);
  const sides = readSides(raw);
  if (sides === null) return null;
  const { total } = sides;
  const cache = readCache(raw);
  const reasoning = readReasoning(raw);
  const citation = firstCount(raw, ["citation_tokens"]);
  const completion = sides.completion ?? 0;
  const derived = sides.prompt || citation !== null ? 0 : promptInTotal(raw, {
    ...{ total, completion, reasoning },
    cached: cache.read + cache.write,
  });
  const prompt = (sides.prompt ?? 0) || derived;
  const surplus = (total ?? 0) - prompt - completion;
  const isNative = total === null && raw.prompt_tokens === undefined && cache.isAnthropic;
  const isBeside = isNative || isCacheBeside(cache, { prompt, surplus, reasoning });
  const besides = isBeside ? cache.read + cache.write : 0;
  // A missing response is all that the total has besides its prompt.
  const isSilent = sides.completion === null || (completion === 0 && !reasoning);
  // Perplexity's citations and reasoning are not in its totals.
  const isBesideAll = citation !== null || (total === null && isReasoningBeside(raw));
  const hidden = hiddenTokens(isSilent ? null : reasoning, {
    completion,
    surplus: isBesideAll ? reasoning ?? 0 : prompt + besides > 0 ? surplus - besides : 0,
  });
  const input = prompt + besides;
  const output = completion + hidden.output;
  const unassigned = input + output === 0 ? total ?? 0 : 0;
  if (input + hidden.input + output + unassigned === 0) return null;
  const media = readMedia(raw);
  const counts = tokenCounts({ citation: citation ?? 0 });
  splitInput(counts, input, { cache, media });
  counts.uncachedInput += hidden.input;
  counts.audioOutput = Math.min(media.audioOutput, output);
  counts.imageOutput = Math.min(media.imageOutput, output - counts.audioOutput);
  counts.output = output - counts.audioOutput - counts.imageOutput;
  counts.reasoning = Math.min(reasoning ?? hidden.output, counts.output);
  return {
    counts,
    reasoning: reasoning ?? (hidden.output > 0 ? hidden.output : null),
    toolInput: hidden.input + counts.citation,
    hasCitations: citation !== null,
    unassigned,
    saysInput: sides.prompt !== null || derived > 0,
    saysOutput: sides.completion !== null || output > 0,
    isExact: derived === 0 && !(isSilent && output > 0) && !hasFractions(raw),
  };
}

/**
 * The prompt of a report that has none, or zero: what its total has besides the response. Zero
 * where that does not hold what the cache has of it.
 */
function promptInTotal(
  raw: JsonObject,
  { total, completion, reasoning, cached }: {
    total: number | null;
    completion: number;
    reasoning: number | null;
    cached: number;
  },
): number {
  if (total === null || completion + (reasoning ?? 0) === 0) return 0;
  const isBeside = (reasoning ?? 0) > completion || isReasoningBeside(raw);
  const left = total - completion - (isBeside ? reasoning ?? 0 : 0);
  return left >= cached ? Math.max(0, left) : 0;
}

const countNames = [...promptNames, ...completionNames, ...totalNames];

function hasFractions(raw: JsonObject): boolean {
  for (const name of countNames) {
    const count = raw[name];
    if (typeof count === "number" && !Number.isInteger(count)) return true;
  }
  return false;
}

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

/**
 * Splits a prompt into its classes. Details that together exceed it overlap: audio and images may
 * have been read from the cache. No token is paid twice.
 */
function splitInput(
  counts: TokenCounts,
  input: number,
  { cache, media }: { cache: CacheTokens; media: ReturnType<typeof readMedia> },
): void {
  const read = Math.min(cache.read, input);
  const write = Math.min(cache.write, input - read);
  const audio = Math.min(media.audioInput, input);
  const image = Math.min(media.imageInput, input - audio);
  let overlap = Math.max(0, read + write + audio + image - input);
  const take = (most: number, reported: number) => {
    const taken = Math.min(most, Math.max(reported, overlap));
    overlap = Math.max(0, overlap - taken);
    return taken;
  };
  counts.cachedAudioInput = take(Math.min(audio, read), media.cachedAudioInput);
  counts.cachedImageInput = take(
    Math.min(image, read - counts.cachedAudioInput),
    media.cachedImageInput,
  );
  counts.audioInput = audio - counts.cachedAudioInput;
  counts.imageInput = image - counts.cachedImageInput;
  counts.cachedInput = read - counts.cachedAudioInput - counts.cachedImageInput;
  // What still overlaps was written to the cache.
  const written = Math.max(0, write - overlap);
  counts.cacheWriteHour = Math.min(cache.hour, written);
  counts.cacheWrite = written - counts.cacheWriteHour;
  counts.uncachedInput = Math.max(
    0,
    input - read - written - counts.audioInput - counts.imageInput,
  );
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
