import { z } from "zod";
import { modelName, userField } from "../../base/fields.ts";
import type { JsonObject } from "../../base/json.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, ModelRequest } from "../../inference/model_request.ts";
import { requireExactNames } from "../openai/fields.ts";
import { requireKnownMadeFields } from "../openai/known_fields.ts";
import { passedOnRequest } from "../openai/passed_on.ts";
import { requireNoStoredFields } from "../openai/stored_things.ts";
import { imageOutputTokens } from "./output_tokens.ts";

/** A request for images. Only fields that the price depends on are checked. */
export const imageRequestSchema = z.looseObject({
  model: modelName,
  prompt: z.string().min(1),
  n: z.int().min(1).max(10).nullish().meta({ description: "How many images." }),
  size: z.string().max(32).nullish().meta({ description: "Such as `1024x1024`, or `auto`." }),
  quality: z.string().max(32).nullish(),
  stream: z.boolean().nullish(),
  partial_images: z.int().min(0).max(3).nullish(),
  user: userField,
}).meta({ id: "ImageRequest" });

const fieldNames = Object.keys(imageRequestSchema.shape);
const sizePattern = /^\d{1,5}x\d{1,5}$/;
/** Models that have defaults of their own; all others choose by themselves. */
const dallE = /(?:^|\/)dall-e-[23]$/;

/** Reads a request for images. Throws 400 for a malformed one, and for refused fields. */
export function readImageRequest(
  body: JsonObject,
  { bytes, fields }: { bytes: number; fields: FieldPolicy },
): ModelRequest {
  requireExactNames(body, fieldNames);
  const { model, n, size, quality, partial_images: partial } = parseWith(imageRequestSchema, body);
  requireKnownMadeFields(body, { of: "images", policy: fields });
  requireNoStoredFields(body, fields.allowed);
  const hasDefaults = dallE.test(model);
  const asked = size?.toLowerCase() ?? "auto";
  const images = {
    count: n ?? 1,
    size: sizePattern.test(asked) ? asked : hasDefaults ? "1024x1024" : null,
    quality: known(quality) ?? (hasDefaults ? "standard" : null),
  };
  return {
    ...passedOnRequest(body, { model, bytes }),
    units: { images },
    outputTokens: imageOutputTokens(images, partial ?? 0),
  };
}

function known(quality: string | null | undefined): string | null {
  return quality && quality !== "auto" ? quality.toLowerCase() : null;
}
