import { type ImageSize, imageSize } from "./image_size.ts";
import { bareModelName, modelVersion } from "./model_family.ts";

const squarePixels = 1_024 * 1_024;
/** The size of an image whose own is not known: that of most. */
const usualSize: ImageSize = { width: 1_024, height: 1_024 };

/**
 * Output tokens of an image that a model has made, by what providers publish of its size. Of a
 * model that is not known, those of the dearest usual one. Used where no usage is reported.
 */
export function madeImageTokens(model: string, size: ImageSize | null): number {
  const { width, height } = size ?? usualSize;
  const squares = Math.max(1, width * height / squarePixels);
  const name = bareModelName(model);
  return isKnownMaker(name) ? geminiTokens(name, squares) : openAiTokens(squares);
}

/** Whether a model's images have a size in tokens of their own. */
export function isKnownMaker(model: string): boolean {
  return model.toLowerCase().includes("gemini");
}

/** https://ai.google.dev/gemini-api/docs/pricing: one price up to 2K from version 3, then 4K. */
function geminiTokens(name: string, squares: number): number {
  const version = modelVersion(name);
  if (version && version.major < 3) return 1_290;
  if (squares <= 1.5) return 1_120;
  const isFlash = name.includes("flash");
  if (squares <= 6) return isFlash ? 1_680 : 1_120;
  return isFlash ? 2_520 : 2_000;
}

/** Of high quality: https://platform.openai.com/docs/guides/image-generation#cost-and-latency */
function openAiTokens(squares: number): number {
  return Math.ceil(4_160 * squares);
}

/** The size of an image in a data URL by its header; null for an address, and for other formats. */
export function sizeOfDataUrl(url: string): ImageSize | null {
  const comma = url.startsWith("data:") ? url.indexOf(",", 5) : -1;
  return comma < 0 ? null : imageSize(url.slice(comma + 1));
}
