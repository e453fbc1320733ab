import { z } from "zod";
import type { oas31 } from "zod-openapi";
import { retryAfterHeader } from "../base/fields.ts";
import { chatBodyBytesMax } from "../base/limits.ts";
import { anyCode, type EndpointDoc, type ErrorDoc } from "../base/endpoint_doc.ts";

/** The body of an error of one status of one operation, with the codes that it may have there. */
export function errorSchemaOf(cases: readonly ErrorDoc[]): oas31.SchemaObject {
  const error = { $ref: "#/components/schemas/Error" };
  const codes = [...new Set(cases.map(({ code }) => code))];
  if (codes.includes(anyCode)) return error;
  const known = codes.flatMap((code) => (code === anyCode ? [] : [code]));
  const narrowed = { properties: { error: { properties: { code: { enum: known } } } } };
  return { allOf: [error, narrowed] };
}

/** All errors of an operation: its own, and those that every operation of its kind can give. */
export function endpointErrors(operation: EndpointDoc): ErrorDoc[] {
  const { access, body, errors = [] } = operation;
  return [
    ...errors,
    ...(access === "anyone" ? [] : keyErrors),
    ...(access === "operator" ? operatorErrors : []),
    ...(["anyone", "operator", "metrics"].includes(access) ? [] : scopeErrors),
    ...(body ? bodyErrors : []),
    ...anyErrors,
  ];
}

const bearer = z.object({
  "WWW-Authenticate": z.literal("Bearer").meta({ description: "How a key is sent." }),
});
const keyErrors: readonly ErrorDoc[] = [
  {
    status: 401,
    code: "invalid_api_key",
    when: "The key is missing, unknown or revoked.",
    headers: bearer,
  },
  {
    status: 503,
    code: "contended",
    when: "The project kept changing. Nothing was done; try again.",
  },
];
const scopeErrors: readonly ErrorDoc[] = [
  { status: 403, code: "insufficient_scope", when: "The key lacks the scope of this operation." },
];
const operatorErrors: readonly ErrorDoc[] = [
  { status: 404, code: "unknown_url", when: "The server has no `ADMIN_KEY`: this API is off." },
];

const bodyErrors: readonly ErrorDoc[] = [
  { status: 400, code: null, when: "The body is not JSON." },
  {
    status: 400,
    code: "invalid_json",
    when: "The body is not a JSON object, is nested too deeply, or has too many values.",
  },
  { status: 400, code: "invalid_form", when: "The body is not a form, where one is expected." },
  { status: 400, code: "incomplete_body", when: "The connection broke before the body's end." },
  { status: 400, code: "missing_required_parameter", when: "A field is missing." },
  { status: 400, code: "unknown_parameter", when: "There is no such field." },
  { status: 400, code: "invalid_type", when: "A field's value is of another type." },
  { status: 400, code: "invalid_value", when: "A field's value is out of bounds." },
  {
    status: 408,
    code: "request_timeout",
    when: "The body did not come within a minute.",
  },
  {
    status: 413,
    code: "request_too_large",
    when: `The body is larger than 128 KiB; of a chat, ${
      chatBodyBytesMax / 1024 / 1024
    } MiB; of a sound, 25 MiB.`,
  },
  {
    status: 415,
    code: "unsupported_media_type",
    when: "The body is not said to be JSON, or a form where that is expected; or is compressed.",
  },
];

const anyErrors: readonly ErrorDoc[] = [
  { status: 500, code: "internal_error", when: "An internal error, which has been logged." },
  {
    status: 503,
    code: "store_unavailable",
    when: "The database does not answer. Try again.",
    headers: retryAfterHeader.partial(),
  },
  {
    status: 503,
    code: "overloaded",
    when: "Too many or too large requests are under way. Try again.",
  },
  {
    status: 503,
    code: "secret_unreadable",
    when: "No key of `SECRETS_KEY` decrypts a stored secret that is needed. The operator has to " +
      "start the service with the key that does as well, or to enter the secret again.",
  },
];
