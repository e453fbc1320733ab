import { isObject, type JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { Dialect } from "../../upstreams/dialect.ts";
import { withoutEngineIds } from "../openai/fields.ts";
import { maxTokensFields } from "./request.ts";

/** The caller's body as JSON, with our output bound and, for a stream, a request for usage. */
export function writeUpstreamBody(request: ModelRequest, cap: number, dialect: Dialect): string {
  // A field set to undefined is not written. Deleting it instead takes three times as long.
  const body: Partial<JsonObject> = { ...request.body };
  for (const field of maxTokensFields) body[field] = undefined;
  body[dialect.maxTokensField] = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  if (request.stream) {
    const options = isObject(body.stream_options) ? body.stream_options : {};
    body.stream_options = dialect.requestsUsage ? { ...options, include_usage: true } : undefined;
  }
  return JSON.stringify(withoutEngineIds(body));
}
