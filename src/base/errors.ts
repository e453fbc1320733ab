import { z } from "zod";

/** The body of every error, as OpenAI's. */
export const errorSchema = z.object({
  error: z.object({
    message: z.string().meta({ description: "For people. Names the field and what is wrong." }),
    type: z.string().meta({ description: "The kind of the error, in OpenAI's words." }),
    param: z.string().nullable().meta({ description: "The invalid field." }),
    code: z.string().nullable().meta({ description: "For programs: what happened." }),
  }),
}).meta({
  id: "Error",
  description: "The body of every error.",
  examples: [{
    error: {
      message: "Missing required parameter: 'amount'.",
      type: "invalid_request_error",
      param: "amount",
      code: "missing_required_parameter",
    },
  }],
});

/** The body of every error. */
type ErrorBody = z.output<typeof errorSchema>;

/** The public part of an error, and the cause, which only the log gets. */
export interface ErrorDetail {
  message: string;
  /** A type that OpenAI clients know, or the upstream's own. */
  type?: string;
  code?: string | null;
  param?: string | null;
  headers?: Record<string, string>;
  /** For clients that step back by it; only in Anthropic's shape. */
  details?: Readonly<Record<string, unknown>>;
  /** Kept for the operator's log, never sent. */
  cause?: unknown;
}

/**
 * An error that a caller sees as a status and OpenAI's error body
 * (`{"error":{message,type,param,code}}`). Expected outcomes, such as an empty balance,
 * are values and never this.
 */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly headers: Record<string, string>;
  readonly details: ErrorDetail["details"] | null;

  constructor(status: number, detail: ErrorDetail) {
    super(detail.message, { cause: detail.cause });
    this.name = "ApiError";
    this.status = status;
    this.type = detail.type ?? (status >= 500 ? "server_error" : "invalid_request_error");
    this.code = detail.code ?? null;
    this.param = detail.param ?? null;
    this.headers = detail.headers ?? {};
    this.details = detail.details ?? null;
  }

  /** Returns this error with additional headers. Headers that it already has take precedence. */
  with(headers: Record<string, string>): ApiError {
    const { status, message, type, code, param, cause, details } = this;
    const both = { ...headers, ...this.headers };
    const detail = { message, type, code, param, cause, headers: both };
    return new ApiError(status, details ? { ...detail, details } : detail);
  }

  /** The body as it is sent, always with all four keys. */
  body(): ErrorBody {
    const { message, type, param, code } = this;
    return { error: { message, type, param, code } };
  }
}

/** 400: the field `param` is invalid; `message` names it and what is wrong with its value. */
export function badRequest(
  param: string | null,
  message: string,
  code = "invalid_value",
): ApiError {
  return new ApiError(400, { message, param, code });
}

/** 400: no page of the list returned this cursor. */
export function badCursor(): ApiError {
  return badRequest("cursor", "'cursor' is not valid.");
}

/** 404 for what does not exist, or is another project's: the two cannot be told apart. */
export function notFound(what: string, code = "not_found"): ApiError {
  return new ApiError(404, { message: `No such ${what}.`, code });
}

/** 500: a fault of ours, which only the log explains. */
export function internalError(cause: unknown): ApiError {
  return new ApiError(500, {
    message: "The service failed to handle this request. It has been logged.",
    code: "internal_error",
    cause,
  });
}

const storeAway: ErrorDetail = {
  message: "The service's store is not answering. Try again shortly.",
  type: "service_unavailable_error",
  code: "store_unavailable",
  headers: { "retry-after": "1" },
};

/** 503: the store did not answer in time; nothing is known to have been changed. */
export function storeUnavailable(cause: unknown): ApiError {
  return new ApiError(503, { ...storeAway, cause });
}

/** Whether the store did not answer. */
export function isStoreAway(error: unknown): boolean {
  return error instanceof ApiError && error.code === storeAway.code;
}

/** 503, as `storeUnavailable`: a write may have landed, and nobody can tell. */
export class UnknownOutcome extends ApiError {
  constructor(cause: unknown) {
    super(503, { ...storeAway, cause });
  }
}

/** 503, returned at once: an unbounded queue would serve no one in time. */
export function overloaded(): ApiError {
  return new ApiError(503, {
    message: "The service is at its limit. Try again shortly.",
    type: "service_unavailable_error",
    code: "overloaded",
    headers: { "retry-after": "1" },
  });
}

/** 503: the process is about to stop. */
export function serverStopping(): ApiError {
  return new ApiError(503, {
    message: "The service is restarting. Try again shortly.",
    type: "service_unavailable_error",
    code: "server_shutdown",
  });
}

/** Returns what the log records of an error: its code, and its cause, which callers never see. */
export function errorFields(error: unknown): { code: string | null; cause: string | undefined } {
  if (!(error instanceof ApiError)) return { code: "internal_error", cause: causeText(error) };
  const { code, cause } = error;
  return { code, cause: cause === undefined ? undefined : causeText(cause) };
}

function causeText(cause: unknown): string {
  return cause instanceof Error ? cause.stack ?? cause.message : String(cause);
}
