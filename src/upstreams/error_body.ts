import { isObject, type Json, type JsonObject, parseJson } from "../base/json.ts";
import type { Secret } from "../base/secret.ts";

/** The content of an upstream's error body, whatever its shape. */
export interface UpstreamErrorBody {
  status: number;
  message: string;
  type: string | null;
  param: string | null;
  code: string | null;
  /** Google's reason, beside a code that only repeats the status. */
  reason: string | null;
  /** The error of the provider behind a router, as OpenRouter passes it on. */
  behind: UpstreamErrorBody | null;
}

/** The longest text of an upstream's error that is kept. */
export const errorCharsMax = 2_000;

/** Removes the operator's key from a text: some servers repeat it. */
export function redactKey(text: string, apiKey: Secret | null): string {
  return apiKey ? text.replaceAll(apiKey.reveal(), "[redacted]") : text;
}

/** Reads a redacted error body in OpenAI's shape, or a similar one. */
export function readUpstreamError(status: number, text: string): UpstreamErrorBody {
  const sent = parsed(text);
  // Google's OpenAI-compatible endpoint wraps it in a list.
  const body = Array.isArray(sent) ? sent[0] : sent;
  const error = isObject(body) ? errorIn(body) ?? body : null;
  const detail = isObject(error) ? error : {};
  const message = typeof error === "string"
    ? error
    : detail.message ?? detail.detail ?? detail.text;
  const [invalid, ...more] = invalidFields(isObject(message) ? message.detail : message);
  const details = invalid ? [invalid, ...more].map(({ said }) => said).join("; ") : asText(message);
  return {
    status,
    message: (details ?? "").slice(0, errorCharsMax),
    type: asText(detail.type),
    param: asText(detail.param) ?? invalid?.param ?? null,
    code: asText(detail.code) ?? asText(detail.error_code),
    reason: reasonIn(detail.details),
    behind: faultBehind(status, detail.metadata),
  };
}

/** The error in a body or a chunk: its own, else its choice's, as OpenRouter has it; or null. */
export function errorIn({ error, choices }: JsonObject): Json | null {
  if (error) return error;
  const [choice] = Array.isArray(choices) ? choices : [];
  return isObject(choice) && choice.error ? choice.error : null;
}

/** Whether every choice of a body or a chunk is an error. A model has written nothing of it. */
export function areErrors(choices: readonly Json[]): boolean {
  return choices.length > 0 &&
    choices.every((choice) =>
      isObject(choice) && (Boolean(choice.error) || choice.finish_reason === "error")
    );
}

function reasonIn(details: unknown): string | null {
  const found = Array.isArray(details) ? details.find((one) => isObject(one) && one.reason) : null;
  return isObject(found) ? asText(found.reason) : null;
}

function faultBehind(status: number, metadata: unknown): UpstreamErrorBody | null {
  if (!isObject(metadata) || typeof metadata.raw !== "string") return null;
  const { raw } = metadata;
  return readUpstreamError(status, parsed(raw) === null ? JSON.stringify({ message: raw }) : raw);
}

/** Invalid fields as FastAPI lists them: https://fastapi.tiangolo.com/tutorial/handling-errors/ */
function invalidFields(list: unknown): { param: string; said: string }[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((item) => {
    if (!isObject(item) || !Array.isArray(item.loc)) return [];
    const param = item.loc.filter((part, at) => at > 0 || part !== "body").join(".");
    return [{ param, said: `${param}: ${asText(item.msg) ?? "not valid"}` }];
  });
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

function asText(value: unknown): string | null {
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}
