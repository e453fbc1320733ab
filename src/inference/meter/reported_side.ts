import { ownMember } from "../../base/json.ts";
import {
  joinSides,
  type TokenClass,
  type TokenCounts,
  tokenCounts,
} from "../../base/token_classes.ts";
import type { UsageBounds } from "../../pricing/usage_bounds.ts";
import type { ToolImages } from "../../pricing/usage_fields.ts";
import type { ReportedExtras, ReportedUsage, TokenUsage } from "../../pricing/usage.ts";

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

/** What two reports say besides tokens: of the calls of a tool, and of a cost, the highest. */
export function joinExtras(before: ReportedExtras, next: ReportedExtras): ReportedExtras {
  const { toolCalls, searchContext, serviceTier, statedCost, toolImages } = next;
  const isNew = searchContext ?? serviceTier ?? statedCost ?? toolImages ?? null;
  const names = Object.keys(toolCalls);
  if (isNew === null && names.length === 0) return before;
  const highest = { ...before.toolCalls };
  for (const name of names) {
    highest[name] = Math.max(ownMember(highest, name) ?? 0, toolCalls[name] ?? 0);
  }
  const known = before.toolImages;
  return {
    toolCalls: highest,
    searchContext: searchContext ?? before.searchContext,
    serviceTier: serviceTier ?? before.serviceTier,
    statedCost: statedCost !== null && statedCost > (before.statedCost ?? 0n)
      ? statedCost
      : before.statedCost,
    toolImages: known && toolImages && known.output > toolImages.output
      ? known
      : toolImages ?? known,
  };
}

/** The tokens of a tool's images, each side up to what tools at the provider are charged for. */
export function withinBounds(
  { text, image, output }: ToolImages,
  { toolInput: most }: UsageBounds,
): ToolImages {
  const imageInput = Math.min(image, most);
  return {
    text: Math.min(text, most - imageInput),
    image: imageInput,
    output: Math.min(output, most),
  };
}
