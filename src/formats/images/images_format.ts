import { endpoints } from "../../base/endpoints.ts";
import type { PassedFormat } from "../../inference/format.ts";
import { imagePriceName } from "../../pricing/units.ts";
import { requirePricedFields, withoutEngineIds } from "../openai/fields.ts";
import { passedOnFormat, requireMadePriced, unpricedValue } from "../openai/passed_on.ts";
import { ImageScanner } from "./image_scanner.ts";
import { readImageRequest } from "./request.ts";

/**
 * OpenAI's images: https://platform.openai.com/docs/api-reference/images/create. The response
 * passes on as it is: its images are counted, and its usage is read.
 */
export const imagesFormat: PassedFormat = {
  ...passedOnFormat,
  ...endpoints.images,
  idPrefix: "img-",
  unit: "images",
  classes: { input: "uncachedInput", output: "imageOutput" },
  bodies: { texts: [], streamed: [] },
  countOutput: ({ outputTokens = 0 }) => outputTokens,
  readRequest: readImageRequest,
  requirePriced(request, covers, allowed) {
    requirePricedFields(request, covers, allowed);
    requireMadePriced(request, covers, { unit: "images", tokens: "imageOutput" });
    const [prices, asked] = [covers.units?.images, request.units?.images];
    if (!prices || !asked || imagePriceName(prices, asked) !== null) return;
    throw unpricedValue("size", "images of this size and quality");
  },
  *promptTexts({ body: { prompt } }) {
    if (typeof prompt === "string") yield prompt;
  },
  templateTokens: () => 0,
  writeBody: ({ body }) => JSON.stringify(withoutEngineIds({ ...body })),
  createScanner: () => new ImageScanner(),
};
