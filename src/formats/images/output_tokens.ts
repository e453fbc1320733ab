import { ownMember } from "../../base/json.ts";
import type { ImageUnits } from "../../pricing/units.ts";

// https://platform.openai.com/docs/guides/image-generation#cost-and-latency

/** Output tokens of an image of 1,024 x 1,024 pixels, by its quality. */
const tokensOfSquare: Readonly<Record<string, number>> = { low: 272, medium: 1_056, high: 4_160 };
const highest = 4_160;
const squarePixels = 1_024 * 1_024;
/** The largest image that a model makes where it chooses the size. */
const autoPixels = 1_024 * 1_536;
/** Tokens of each partial image of a stream. */
const partialTokens = 100;

/** A bound on the output tokens of images, by what OpenAI's image models make of them. */
export function imageOutputTokens(
  { count, size, quality }: ImageUnits,
  partialImages: number,
): number {
  const [width = 0, height = 0] = size?.split("x").map(Number) ?? [];
  const pixels = size === null ? autoPixels : Math.max(width * height, 1);
  const ofSquare = (quality === null ? undefined : ownMember(tokensOfSquare, quality)) ?? highest;
  const each = Math.ceil(ofSquare * Math.max(1, pixels / squarePixels));
  return count * (each + partialImages * partialTokens);
}
