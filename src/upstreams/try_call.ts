import { type EndpointName, endpoints } from "../base/endpoints.ts";
import { ApiError } from "../base/errors.ts";
import { isObject, type Json, parseJson } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { askUpstream } from "./ask.ts";
import { readUpstreamError } from "./error_body.ts";
import type { Upstream } from "./upstream.ts";

/** What came of a call that only tries an upstream. */
export interface TriedCall {
  isAnswered: boolean;
  /** The format in which it was asked. */
  format: TriedFormat;
  /** The status of its response; null where there was none. */
  status: number | null;
  /** The text of its response or of its error, without the key: for the operator alone. */
  text: string;
  tookMs: number;
}

type TriedFormat = Extract<EndpointName, "chat" | "responses" | "messages">;

const waitMs = 30_000;
const shownChars = 1_000;
const question = "Reply with the word OK.";

const bodies: Readonly<Record<TriedFormat, (model: string) => object>> = {
  // Without a bound, whose name depends on the model.
  chat: (model) => ({ model, messages: [{ role: "user", content: question }] }),
  responses: (model) => ({ model, input: question, store: false }),
  messages: (model) => ({ model, max_tokens: 64, messages: [{ role: "user", content: question }] }),
};

/**
 * Makes one short call through an upstream, in the first format that it is known to speak. No user
 * is charged for it, and nothing is learned from it. Never throws for what the upstream does.
 */
export async function tryCall(
  deps: Pick<Deps, "clock" | "config">,
  upstream: Upstream,
  { model, id }: { model: string; id: string },
): Promise<TriedCall> {
  const format = upstream.formats?.find(isTried) ?? "chat";
  const upstreamTimeoutMs = Math.min(deps.config.upstreamTimeoutMs, waitMs);
  const config = { ...deps.config, upstreamTimeoutMs };
  const start = deps.clock.elapsed();
  const ended = (status: number | null, text: string, isAnswered = false): TriedCall => ({
    isAnswered,
    format,
    status,
    text: text.slice(0, shownChars),
    tookMs: Math.round(deps.clock.elapsed() - start),
  });
  try {
    const { status, text } = await askUpstream({ clock: deps.clock, config }, upstream, {
      method: "POST",
      ...endpoints[format],
      model,
      body: JSON.stringify(bodies[format](model)),
      id,
    });
    if (status === 200) {
      const said = saidIn(text);
      return ended(status, said ?? text, said !== null);
    }
    return ended(status, readUpstreamError(status, text).message || text);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { message, cause } = error;
    return ended(null, cause === undefined ? message : `${message} ${causeText(cause)}`);
  }
}

function isTried(format: string): format is TriedFormat {
  return Object.hasOwn(bodies, format);
}

function causeText(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** The text of a response in any of the formats; null where it is none of them. */
function saidIn(text: string): string | null {
  const body = parsed(text);
  if (!isObject(body)) return null;
  const { choices, content, output } = body;
  if (Array.isArray(choices)) {
    const [choice] = choices;
    const message = isObject(choice) ? choice.message : null;
    return isObject(message) ? String(message.content ?? "") : null;
  }
  const parts = Array.isArray(content)
    ? content
    : Array.isArray(output)
    ? output.flatMap((item) => isObject(item) && Array.isArray(item.content) ? item.content : [])
    : null;
  return parts &&
    parts.flatMap((part) => isObject(part) && typeof part.text === "string" ? [part.text] : [])
      .join("");
}

function parsed(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
