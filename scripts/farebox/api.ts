import { isObject } from "../../src/base/json.ts";
import { serviceName } from "../../src/base/version.ts";
import { exitCodes, Failure, Refusal, Unreachable } from "./failure.ts";
import type { Settings } from "./settings.ts";

/** A response's JSON; a command knows the fields that it reads from the interface. */
// deno-lint-ignore no-explicit-any -- an answer's shape is the service's word
export type Body = Record<string, any>;

/** Options of a call. */
export interface CallOptions {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Sent as JSON. Without a `method`, the call becomes a POST. */
  body?: unknown;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  /** How long the head of the response may take; 30 seconds by default. */
  timeoutMs?: number;
}

/** The service's admin API, called as its operator. */
export interface Api {
  /** Returns the response's JSON. Throws `Refusal`, `Unreachable`. */
  json(path: string, options?: CallOptions): Promise<Body>;
  /** Returns the response itself, for long bodies or other formats. Throws as `json` does. */
  raw(path: string, options?: CallOptions & { stream?: BodyInit }): Promise<Response>;
  /** Yields all items of a paged list, page by page, up to `limit`; returns the next cursor. */
  pages(
    path: string,
    list: { name: string; limit: number; query?: CallOptions["query"] },
  ): AsyncGenerator<Body[], string | null>;
}

const timeoutMsDefault = 30_000;
const pageSize = 100;

/**
 * Creates the API at a URL. The key is only sent there, and not before the server there has said
 * that it is Farebox: a wrong URL may be anybody's.
 */
export function createApi({ url, adminKey }: Settings): Api {
  let isKnown = false;

  async function raw(path: string, options: CallOptions & { stream?: BodyInit } = {}) {
    if (!isKnown) await requireFarebox(url);
    isKnown = true;
    const { body, stream, query = {}, headers, timeoutMs = timeoutMsDefault } = options;
    const content = stream ?? (body === undefined ? null : JSON.stringify(body));
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]]
    );
    const search = given.length > 0 ? `?${new URLSearchParams(given)}` : "";
    const response = await send(url, `${path}${search}`, timeoutMs, {
      method: options.method ?? (content === null ? "GET" : "POST"),
      body: content,
      headers: {
        authorization: `Bearer ${adminKey}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
    });
    if (response.ok) return response;
    throw await faultOf(response, url);
  }

  async function json(path: string, options?: CallOptions): Promise<Body> {
    const response = await raw(path, options);
    const answer = await response.json().catch(() => null);
    if (isObject(answer)) return answer;
    throw notFarebox(url, "not a JSON object");
  }

  return {
    raw,
    json,
    async *pages(path, { name, limit, query }) {
      let left = limit;
      let cursor: string | undefined = query?.cursor?.toString();
      for (;;) {
        const size = Math.min(pageSize, left);
        const page = await json(path, { query: { ...query, cursor, limit: size } });
        const items: Body[] = listIn(page, name, url);
        yield items;
        left -= items.length;
        if (page.nextCursor === null || left <= 0) return page.nextCursor;
        cursor = page.nextCursor;
      }
    },
  };
}

/** Sends a request and follows no redirect. Throws `Unreachable` without a response in time. */
async function send(
  url: string,
  path: string,
  timeoutMs: number,
  init: RequestInit = {},
): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    return await fetch(`${url}${path}`, { ...init, redirect: "manual", signal: late.signal });
  } catch (error) {
    throw noAnswer(url, error, late.signal.aborted ? timeoutMs : null);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Asks the server whether it is Farebox; nothing secret is sent. Throws `Unreachable` without a
 * response, and a `Failure`, which nothing repeats, for another one.
 */
async function requireFarebox(url: string): Promise<void> {
  const response = await send(url, "/healthz", timeoutMsDefault).catch((error) => {
    if (!(error instanceof Unreachable)) throw error;
    throw new Unreachable(error.message, false);
  });
  const { status } = response;
  const answer = await response.json().catch(() => null);
  if (status === 200 && isObject(answer) && answer.service === serviceName) return;
  const what = status === 200 ? "another answer" : `${status}`;
  throw new Failure(
    exitCodes.unreachable,
    `The server at ${url} is not Farebox: it sent ${what} for /healthz. No key was sent to it. ` +
      "Set the service's URL with --service or FAREBOX_URL.",
  );
}

/** Returns the items of a page. Throws `Unreachable` where it is not a page of Farebox. */
function listIn(page: Body, name: string, url: string): Body[] {
  const { [name]: items, nextCursor } = page;
  const isPage = Array.isArray(items) && items.every(isObject) &&
    (nextCursor === null || typeof nextCursor === "string");
  if (isPage) return items;
  throw notFarebox(url, `JSON without a list of ${name}`);
}

/** Converts an error response to the command's failure. */
async function faultOf(response: Response, url: string): Promise<Refusal | Unreachable> {
  const { status } = response;
  const body: Body | null = await response.json().catch(() => null);
  const error = body?.error;
  if (typeof error?.message !== "string") {
    return notFarebox(url, `${status} without a Farebox error`);
  }
  if (status === 503) {
    return new Unreachable(`The service at ${url} cannot handle it now: ${error.message}`);
  }
  const hint = hints[error.code ?? ""] ?? "";
  return new Refusal(status, { message: `${error.message}${hint}`, code: error.code ?? null });
}

const hints: Record<string, string> = {
  invalid_api_key: " ADMIN_KEY must be the key that the service was started with.",
};

function notFarebox(url: string, what: string): Unreachable {
  return new Unreachable(`The server at ${url} is not Farebox: it sent ${what}.`);
}

function noAnswer(url: string, error: unknown, lateAfterMs: number | null): Unreachable {
  if (lateAfterMs !== null) {
    return new Unreachable(`The service at ${url} did not respond within ${lateAfterMs / 1000} s.`);
  }
  const why = error instanceof Error ? String(error.cause ?? error.message) : String(error);
  const wasSent = !why.includes("client error (Connect)");
  return new Unreachable(
    `The service does not respond at ${url}. Is it running, and is the URL right? ` +
      `Set it with --service or FAREBOX_URL. (${why})`,
    wasSent,
  );
}
