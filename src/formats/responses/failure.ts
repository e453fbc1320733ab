import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { Secret } from "../../base/secret.ts";
import { readUpstreamError, redactKey } from "../../upstreams/error_body.ts";
import { errorInBody, toCallerError } from "../../upstreams/errors.ts";
import { isErrorChunk, parsedChunk, streamError } from "../openai/stream_error.ts";

/** Codes of a failed response that concern what its caller sent. */
const callersCodes = /^(invalid_|unsupported_|empty_|image_|failed_to_download|bio_policy)/;

/** The error of a response that says it failed, as its caller sees it. */
export function failureOf(response: JsonObject, apiKey: Secret | null): ApiError {
  const error = response.error ?? (response.type === "error" ? response : null);
  const text = redactKey(JSON.stringify({ error }), apiKey);
  const told = errorInBody(text);
  if (told) return told;
  const code = isObject(error) ? error.code : null;
  if (typeof code === "string" && callersCodes.test(code)) {
    return toCallerError({ ...readUpstreamError(400, text), status: 400 }, null);
  }
  return streamError(text, apiKey);
}

/** The type of an event: in its data, else by its name. */
export function eventType(chunk: JsonObject, { event }: EventSourceMessage): string {
  return typeof chunk.type === "string" ? chunk.type : event ?? "";
}

/** Whether an event is an error: by its name, by its type, or by what it has. */
export function isErrorEvent(message: EventSourceMessage, chunk: Json | undefined): boolean {
  const type = isObject(chunk) ? chunk.type : null;
  const isNamed = message.event === "error" || type === "error";
  // An event about a tool's call may have the error of that call.
  if (!isNamed && typeof type === "string" && type.startsWith("response.")) return false;
  return isErrorChunk(isNamed ? "error" : undefined, chunk);
}

/** The error that an event of this format is; null for other events, also for a failed response. */
export function errorOfOwnEvent(
  message: EventSourceMessage,
  apiKey: Secret | null,
): ApiError | null {
  const { data } = message;
  if (data === "[DONE]" || !isErrorEvent(message, parsedChunk(data))) return null;
  return errorInBody(redactKey(data, apiKey)) ?? streamError(data, apiKey);
}

/** The error that an event states, in an event of its own or as `response.failed`; else null. */
export function errorOfResponseEvent(
  message: EventSourceMessage,
  apiKey: Secret | null,
): ApiError | null {
  const error = errorOfOwnEvent(message, apiKey);
  if (error || message.data === "[DONE]") return error;
  const chunk = parsedChunk(message.data);
  if (!isObject(chunk) || eventType(chunk, message) !== "response.failed") return null;
  return failureOf(isObject(chunk.response) ? chunk.response : {}, apiKey);
}
