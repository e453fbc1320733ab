import type { ApiError } from "./errors.ts";

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** The body of an error as clients of Anthropic's API read it. */
export function anthropicErrorBody({ status, message }: ApiError, requestId: string): unknown {
  const usual = status >= 500 ? "api_error" : "invalid_request_error";
  const type = types[status] ?? usual;
  return { type: "error", error: { type, message }, request_id: requestId };
}
