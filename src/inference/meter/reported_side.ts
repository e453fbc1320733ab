import {
  joinSides,
  type TokenClass,
  type TokenCounts,
  tokenCounts,
} from "../../base/token_classes.ts";
import type { ReportedUsage, TokenUsage } from "../../pricing/usage.ts";

/** A report, as it counts for one side: the prompt or the response. */
export interface Report
  extends Pick<ReportedUsage, "counts" | "toolInput" | "hasCitations" | "saysInput"> {
  /** Tokens of this side. */
  total: number;
  /** Tokens of it that are in a narrower class. */
  detail: number;
}

/** The tokens of one side, and whether they are as reported. */
export interface Counted {
  counts: TokenCounts;
  isReported: boolean;
}

/** The usage of both sides. */
export function joined(input: Counted, output: Counted): TokenUsage {
  const isReported = input.isReported && output.isReported;
  return {
    ...joinSides(input.counts, output.counts),
    source: isReported ? "provider" : "estimated",
  };
}

/** No tokens, and nothing to report. */
export const nothingCounted: Counted = { counts: tokenCounts({}), isReported: true };

/** Tokens of a response that is images or sound, or of such a prompt, without any details. */
export function inClass(counts: TokenCounts, name: TokenClass): TokenCounts {
  if (name === "output" || name === "uncachedInput" || counts[name] > 0) return counts;
  const { output, reasoning, uncachedInput } = counts;
  return name.endsWith("Input")
    ? { ...counts, [name]: uncachedInput, uncachedInput: 0 }
    : { ...counts, [name]: output - reasoning, output: reasoning };
}

/** Of two reports of one side, the larger; of equal ones, the more detailed. */
export function larger(before: Report | null, next: Report): Report {
  if (!before) return next;
  if (before.total !== next.total) return before.total > next.total ? before : next;
  if (before.detail !== next.detail) return before.detail > next.detail ? before : next;
  return before.counts.cacheWriteHour > 0 && writtenOf(before) === writtenOf(next) ? before : next;
}

function writtenOf({ counts: { cacheWrite, cacheWriteHour } }: Report): number {
  return cacheWrite + cacheWriteHour;
}
