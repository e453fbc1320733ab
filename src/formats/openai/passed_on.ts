import { userIn } from "../../base/user_id.ts";
import { badRequest } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { PassedFormat } from "../../inference/format.ts";
import type { ModelRequest, PriceCoverage } from "../../inference/model_request.ts";
import type { UnitPrice } from "../../pricing/units.ts";
import type { PriceField } from "../../base/token_classes.ts";
import { pricedOtherwise } from "../../upstreams/errors.ts";
import { readExtras } from "./extras.ts";
import { errorOfEvent } from "./stream_error.ts";

/** The common part of formats whose responses pass on as they are. */
export const passedOnFormat = {
  kind: "passed",
  passedHeaders: ["openai-beta"],
  maxTokensFields: [],
  mediaParts: () => [],
  errorOf: errorOfEvent,
} as const satisfies Partial<PassedFormat>;

/** A request of such a format, without what only its own endpoint has. */
export function passedOnRequest(
  body: JsonObject,
  { model, bytes }: Pick<ModelRequest, "model" | "bytes">,
): ModelRequest {
  return {
    model,
    // Events pass on as any other body does.
    stream: false,
    wantsUsage: false,
    choices: 1,
    maxTokens: 0,
    structured: false,
    requiresJson: false,
    asksReasoning: false,
    thinkingBudget: null,
    extras: readExtras(body),
    user: userIn(body),
    body,
    bytes,
  };
}

/**
 * Throws 400 where a price covers nothing of what the endpoint makes: neither its unit nor its
 * tokens. A price of the catalogue covers the model that it names.
 */
export function requireMadePriced(
  { model }: ModelRequest,
  covers: PriceCoverage,
  { unit, tokens }: { unit: UnitPrice; tokens: PriceField },
): void {
  const isPriced = (covers.units?.[unit] ?? null) !== null || covers.field(tokens) ||
    covers.isListed;
  if (!isPriced) throw pricedOtherwise(model);
}

/** 400: the project has no price for what a field asks for. */
export function unpricedValue(field: string, what: string) {
  return badRequest(
    field,
    `'${field}' is not supported here: this project has no price for ${what}.`,
    "unsupported_parameter",
  );
}
