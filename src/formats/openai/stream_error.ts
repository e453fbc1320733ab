import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../../base/errors.ts";
import { isObject, type Json, parseJson, plainNumber } from "../../base/json.ts";
import type { Secret } from "../../base/secret.ts";
import { isAccountError } from "../../upstreams/account_errors.ts";
import { areErrors, readUpstreamError, redactKey } from "../../upstreams/error_body.ts";
import { errorInBody, maskError, UpstreamError } from "../../upstreams/errors.ts";

/** An error event as our caller sees it. Problems of the operator's account are only logged. */
export function streamError(text: string, apiKey: Secret | null): ApiError {
  const upstreamError = readUpstreamError(502, redactKey(text, apiKey));
  const cause = `an error within the stream: ${upstreamError.message}`;
  if (isAccountError(upstreamError)) {
    const message = "The upstream failed during the response.";
    return new UpstreamError("account", 502, { message, code: "upstream_unavailable", cause });
  }
  const { message, type, param, code } = maskError(upstreamError);
  return new UpstreamError("failed", 502, {
    message: message || "The upstream closed the connection before its response ended.",
    type: type ?? "server_error",
    param,
    code: code ?? "upstream_error",
    cause,
  });
}

/** Whether an event with this chunk is an error. */
export function isErrorChunk(event: string | undefined, chunk: Json | undefined): boolean {
  return event === "error" || isError(chunk);
}

/** The error that an event is, as a status where it stands for one; null for other events. */
export function errorOfEvent(
  { data, event }: EventSourceMessage,
  apiKey: Secret | null,
): ApiError | null {
  if (data === "[DONE]" || !isErrorChunk(event, parsedChunk(data))) return null;
  return errorInBody(redactKey(data, apiKey)) ?? streamError(data, apiKey);
}

/**
 * Whether a chunk is an error: in OpenAI's shape, in Google's list, in its choice, or without an
 * `error` key.
 */
function isError(chunk: Json | undefined): boolean {
  if (Array.isArray(chunk)) return isError(chunk[0]);
  if (!isObject(chunk)) return false;
  if (chunk.error) return true;
  if (Array.isArray(chunk.choices) && areErrors(chunk.choices)) return true;
  if (chunk.choices !== undefined) return false;
  return chunk.object === "error" || chunk.type === "error" ||
    plainNumber(chunk.error_code ?? 0) > 0;
}

/** The chunk in an event's data; undefined where it is not JSON. */
export function parsedChunk(data: string): Json | undefined {
  try {
    return parseJson(data);
  } catch {
    return undefined;
  }
}
