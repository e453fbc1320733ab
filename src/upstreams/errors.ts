import { ApiError, type ErrorDetail } from "../base/errors.ts";
import type { Config } from "../config/config.ts";
import type { Deps } from "../deps.ts";
import { isAccountError } from "./account_errors.ts";
import { errorCharsMax, readUpstreamError, type UpstreamErrorBody } from "./error_body.ts";
import { maskOperator } from "./mask.ts";
import { sandboxModel } from "./sandbox.ts";

/** Kinds of upstream errors, as metrics count them. */
export type UpstreamErrorKind = Exclude<keyof Deps["metrics"]["upstreamErrors"], "ended">;

/** An error of an upstream, as our caller sees it. */
export class UpstreamError extends ApiError {
  readonly kind: UpstreamErrorKind;
  /** The upstream's own `Retry-After`; null where it sent none. */
  readonly retryAfter: string | null;

  constructor(
    kind: UpstreamErrorKind,
    status: number,
    { retryAfter = null, ...detail }: ErrorDetail & { retryAfter?: string | null },
  ) {
    super(status, detail);
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}

/** Statuses that concern the caller's request, and are passed on. */
const callersFault = new Set([400, 404, 413, 422, 429]);
/** Anthropic's status for a server that is overloaded, which its clients know: 529. */
const overloadedStatus = 529;
/** The `Retry-After` for a 429 that has none, in seconds. */
const defaultRetryAfter = "1";

/**
 * An upstream's error as our caller sees it. Errors about the request are passed on, and so is the
 * status 529. Errors about the operator's account or key become 502, with their text in the cause.
 * A 429 always has `Retry-After`.
 */
export function toCallerError(error: UpstreamErrorBody, retryAfter: string | null): UpstreamError {
  const { status } = error;
  const { message, type, param, code } = maskError(error);
  const sent = retryAfter && /^[\w .,:+-]{1,64}$/.test(retryAfter) ? retryAfter : null;
  const wait = sent ?? (status === 429 ? defaultRetryAfter : null);
  const retry = wait === null ? {} : { headers: { "retry-after": wait } };
  const isOwners = isAccountError(error);
  if (isOwners || !callersFault.has(status)) {
    const isOverloaded = status === 503 || status === overloadedStatus;
    const shown = status === overloadedStatus && !isOwners ? status : 502;
    return new UpstreamError(isOwners ? "account" : "failed", shown, {
      message: isOverloaded && !isOwners
        ? "The upstream is overloaded. Try again shortly."
        : "The upstream returned an error.",
      code: isOwners ? "upstream_unavailable" : "upstream_error",
      cause: `upstream status ${status}: ${error.message}`,
      ...(isOwners ? {} : retry),
      retryAfter: sent,
    });
  }
  return new UpstreamError(status === 429 ? "rate_limited" : "refused", status, {
    message: message || `The upstream returned status ${status}.`,
    type: type ?? (status === 429 ? "rate_limit_error" : "invalid_request_error"),
    param,
    code: code ?? (status === 429 ? "rate_limit_exceeded" : null),
    cause: `upstream status ${status}`,
    ...retry,
    retryAfter: sent,
  });
}

/** Returns the texts of an error without what they say about the operator. */
export function maskError(
  { message, type, param, code }: UpstreamErrorBody,
): Pick<UpstreamErrorBody, "message" | "type" | "param" | "code"> {
  const shown = (text: string | null) => text && maskOperator(text.slice(0, errorCharsMax));
  return {
    message: maskOperator(message),
    type: shown(type),
    param: shown(param),
    code: shown(code),
  };
}

/** Codes and types of errors in a body with status 200, with the status that each stands for. */
const statusOfCode: readonly (readonly [RegExp, number])[] = [
  [/rate_?limit|too_many_requests|resource_exhausted/, 429],
  [/overloaded/, overloadedStatus],
  [/unavailable|capacity/, 503],
  [/insufficient_quota|billing|payment/, 402],
  [/authentication|invalid_api_key|unauthorized/, 401],
  [/permission|forbidden/, 403],
  [/not_found/, 404],
  [/context_length|invalid_request|invalid_argument|bad_request/, 400],
];

/**
 * An error in a body whose status was 200, as the status that it stands for: by a number in its
 * code, else by its code's name. Null where it stands for none that a caller could act on.
 */
export function errorInBody(text: string): ApiError | null {
  const body = readUpstreamError(200, text);
  const number = Number(body.code);
  const name = `${body.code} ${body.type} ${body.reason}`.toLowerCase();
  const isStatus = (number >= 400 && number < 500) || number === 503 || number === 529;
  const named = isStatus ? number : statusOfCode.find(([pattern]) => pattern.test(name))?.[1];
  const status = named ?? (isAccountError(body) ? 402 : undefined);
  return status === undefined ? null : toCallerError({ ...body, status }, null);
}

/** 502: the upstream's response exceeds one of our own bounds. Its cost is charged. */
export function beyondOurBounds(cause: string): UpstreamError {
  const message = "The upstream's response is too large to be passed on.";
  return new UpstreamError("too_large", 502, { message, code: "response_too_large", cause });
}

/** Whether our own bound or deadline ended a response, and not the upstream. */
export function isOurBound(error: unknown): boolean {
  return error instanceof UpstreamError && (error.kind === "too_large" || error.kind === "timeout");
}

/** Whether an error is a fault of ours, and no answer to a request. */
export function isOurFault(error: unknown): boolean {
  return !(error instanceof ApiError);
}

const reroutableKinds: ReadonlySet<UpstreamErrorKind> = new Set([
  ...["rate_limited", "account", "failed", "unreachable"] as const,
  ...["timeout", "invalid", "broken_off"] as const,
]);

/**
 * Whether another target may answer where one has failed with this error: not where the request
 * itself is at fault. A 404 is about the model or the endpoint of that upstream.
 */
export function isReroutable(error: unknown): error is UpstreamError {
  return error instanceof UpstreamError &&
    (reroutableKinds.has(error.kind) || (error.kind === "refused" && error.status === 404));
}

/** Whether our own deadline ended a response. */
export function isDeadline(error: unknown): boolean {
  return error instanceof UpstreamError && error.kind === "timeout";
}

/** 502: the upstream's response is not valid in the format. */
export function invalidUpstreamResponse(cause: unknown): UpstreamError {
  const message = "The upstream returned an invalid response.";
  return new UpstreamError("invalid", 502, { message, code: "upstream_error", cause });
}

/** 502: no upstream is configured. Not counted as an upstream error. */
export function noUpstream({ dev }: Pick<Config, "dev">): ApiError {
  return new ApiError(502, {
    message: "No upstream is configured for this project: " +
      (dev
        ? `in development only '${sandboxModel}' answers without UPSTREAM_URL.`
        : "its owner sets the project's upstream, or the operator UPSTREAM_URL."),
    code: "upstream_unavailable",
    cause: "no UPSTREAM_URL, and no upstream of the project",
  });
}

/**
 * 404: the project has no price for the model. `meant` is a model with a similar name that has one.
 */
export function modelNotFound(model: string, meant: string | null = null): ApiError {
  return new ApiError(404, {
    message: `The model '${model}' does not exist, or has no price in this project.` +
      (meant === null ? "" : ` Did you mean '${meant}'?`),
    code: "model_not_found",
    param: "model",
  });
}

/** 404: the upstream has no such endpoint. */
export function endpointNotServed(path: string): UpstreamError {
  return new UpstreamError("refused", 404, {
    message: `The upstream of this project has no endpoint '${path}'.`,
    code: "endpoint_not_served",
  });
}

/** 400: the model has a price, but not for the unit that this endpoint is charged by. */
export function pricedOtherwise(model: string): UpstreamError {
  return new UpstreamError("refused", 400, {
    message: `The model '${model}' has no price for this endpoint in this project.`,
    param: "model",
    code: "unsupported_parameter",
  });
}

/** 400: the thinking budget of the caller leaves no room for a response. */
export function thinkingTooLong(budget: number, cause: unknown): UpstreamError {
  return new UpstreamError("refused", 400, {
    message:
      `The thinking budget of ${budget} tokens does not fit into a response of this model. ` +
      "Lower it.",
    code: "invalid_value",
    cause,
  });
}

/** 502: no connection to the upstream. */
export function upstreamUnreachable(cause: unknown): UpstreamError {
  const message = "The upstream could not be reached.";
  return new UpstreamError("unreachable", 502, { message, code: "upstream_error", cause });
}

/** 502: the upstream's response ended early. */
export function upstreamDisconnected(cause: unknown): UpstreamError {
  const message = "The upstream closed the connection before its response ended.";
  return new UpstreamError("broken_off", 502, { message, code: "upstream_error", cause });
}

/** 504: the upstream was silent for too long. */
export function upstreamTimeout(cause: unknown): UpstreamError {
  return new UpstreamError("timeout", 504, {
    message: "The upstream did not respond in time.",
    code: "upstream_timeout",
    cause,
  });
}
