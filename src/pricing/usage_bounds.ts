import {
  inputTokensOf,
  outputTokensOf,
  type TokenClass,
  tokenClassRows,
  type TokenCounts,
} from "../base/token_classes.ts";
import type { ReportedUsage } from "./usage.ts";

/** The most tokens that a request can be charged for, whatever its provider reports. */
export interface UsageBounds {
  /** Tokens of the prompt. */
  input: number;
  /** Tokens of the response, for all choices together. */
  output: number;
  /** Input besides the prompt, which tools at the provider read. */
  toolInput: number;
}

/** The properties of a request from which its bounds follow, in tokens. */
interface BoundedRequest {
  /** The bound on the prompt that was computed before the call. */
  prompt: number;
  /** The output cap, for all choices together. */
  output: number;
  /**
   * The model's context window where the request has images, sounds or files: what their headers
   * say of their sizes may be wrong. Zero for text.
   */
  contextWindow?: number;
  /** The most tokens that the file of a form can have, by its bytes, and that it can cause. */
  file?: { input: number; output: number };
  /** Tools at the provider read in several turns, of which each bills all of the prompt. */
  readsMoreByTools?: boolean;
}

// Templates and tokenizers differ from ours, and not every server counts hidden reasoning against
// the cap.
const marginFactor = 2;
const inputMargin = 2_000;
const outputMargin = 32_768;
const toolInputMax = 1_000_000;

/** Returns the most that a request can be charged for: `guides/usage.md` has the rule. */
export function usageBounds(
  { prompt, output, contextWindow = 0, file, readsMoreByTools = false }: BoundedRequest,
): UsageBounds {
  const byTools = readsMoreByTools ? toolInputMax : 0;
  const input = Math.max(prompt * marginFactor + inputMargin, contextWindow, file?.input ?? 0);
  return {
    input: input + byTools,
    output: Math.max(output * marginFactor + outputMargin, file?.output ?? 0),
    toolInput: toolInputMax,
  };
}

/** The bounds of a response whose report was charged once before. */
export const unbounded: UsageBounds = { input: Infinity, output: Infinity, toolInput: Infinity };

/** The bound of each side of a report. */
export function boundsOf(
  { toolInput, hasCitations }: Pick<ReportedUsage, "toolInput" | "hasCitations">,
  most: UsageBounds,
): { input: number; output: number } {
  return {
    input: most.input + Math.min(toolInput, most.toolInput),
    // Research reasons at length beside its answer.
    output: most.output + (hasCitations ? most.toolInput : 0),
  };
}

type Side = "input" | "output";

/** Returns all tokens of one side. */
export function tokensOf(side: Side, counts: TokenCounts): number {
  return side === "input" ? inputTokensOf(counts) : outputTokensOf(counts);
}

/**
 * Lowers the counts of one side to `most` tokens. The dearest tokens stay: so the cost never falls
 * when a report has more of any class.
 */
export function clampSide(
  counts: TokenCounts,
  side: Side,
  { most, rateOf }: { most: number; rateOf: (name: TokenClass) => bigint },
): TokenCounts {
  if (tokensOf(side, counts) <= most) return counts;
  const clamped = { ...counts };
  let left = most;
  const parts = partsOf(counts, side).sort((a, b) => compare(rateOf(b.name), rateOf(a.name)));
  for (const { name } of parts) clamped[name] = 0;
  for (const { name, tokens, within } of parts) {
    const kept = Math.min(tokens, left);
    left -= kept;
    clamped[name] += kept;
    if (within) clamped[within] += kept;
  }
  return clamped;
}

interface Part {
  name: TokenClass;
  tokens: number;
  /** The class that includes it. */
  within: TokenClass | null;
}

/** The counts of a side without overlap: of a class that includes another one, the rest. */
function partsOf(counts: TokenCounts, side: Side): Part[] {
  const rows = tokenClassRows.filter((row) => row.side === side);
  return rows.map(({ name, within }) => {
    const inner = rows.filter((row) => row.within === name);
    const tokens = inner.reduce((rest, row) => rest - counts[row.name], counts[name]);
    return { name, tokens, within: rows.find((row) => row.name === within)?.name ?? null };
  });
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
