import { ApiError } from "../../base/errors.ts";
import { sseFrame } from "../openai/sse.ts";

/** Types of errors by status: https://platform.claude.com/docs/en/api/errors */
const typeOfStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  408: "timeout_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** Types that an upstream may give an error within a stream, whose status says nothing. */
const typesWithinStreams = new Set([
  "api_error",
  "invalid_request_error",
  "not_found_error",
  "overloaded_error",
  "rate_limit_error",
  "request_too_large",
  "timeout_error",
]);

function typeOf({ status, type }: ApiError): string {
  const known = typeOfStatus[status];
  if (known) return known;
  if (status < 500) return "invalid_request_error";
  return status === 502 && typesWithinStreams.has(type) ? type : "api_error";
}

/** An error in Anthropic's shape, with `code` and `param` as OpenAI's errors have them. */
export function messagesErrorBody(error: ApiError, requestId?: string) {
  const { message, code, param, details } = error;
  return {
    type: "error" as const,
    error: { type: typeOf(error), message, code, param, ...(details ? { details } : {}) },
    ...(requestId === undefined ? {} : { request_id: requestId }),
  };
}

/** One event of a stream. Clients read its type from the `event` line. */
export function eventFrame(type: string, data: string): string {
  return `event: ${type}\n${sseFrame(data)}`;
}

/** An error as the event that ends a stream. */
export function messagesErrorFrame(error: unknown): string {
  const shown = error instanceof ApiError ? error : new ApiError(500, {
    message: "The response could not be completed.",
    code: "internal_error",
  });
  return eventFrame("error", JSON.stringify(messagesErrorBody(shown)));
}
