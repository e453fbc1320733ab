import { decodeUtf8 } from "../base/utf8.ts";
import type { Deps, UpstreamRequest } from "../deps.ts";
import { inflated } from "../http/inflate.ts";
import { endpointUrl, upstreamHeaders } from "./address.ts";
import { abortError, readUpstreamBody } from "./client.ts";
import { redactKey } from "./error_body.ts";
import { upstreamTimeout, upstreamUnreachable } from "./errors.ts";
import type { Upstream } from "./upstream.ts";

/** A request to an upstream that is no call of a model, and costs nothing. */
interface UpstreamQuestion {
  method: UpstreamRequest["method"];
  /** The path below the upstream's base URL, with the query. */
  path: string;
  /** The model that it is for, where Azure has the path for each deployment. */
  model?: string;
  ofDeployments?: true;
  /** The body, as JSON text. */
  body?: string;
  /** Headers besides those of every request. */
  headers?: Record<string, string>;
  /** Our own id of the request. */
  id: string;
}

/**
 * Asks an upstream, and reads its answer whole, without the operator's key in it. Throws 502 when
 * it cannot be reached or its answer is too large, 504 after the deadline.
 */
export async function askUpstream(
  { clock, config }: Pick<Deps, "clock" | "config">,
  upstream: Upstream,
  { method, path, model, ofDeployments, body, headers, id }: UpstreamQuestion,
): Promise<{ status: number; text: string }> {
  const { apiKey, request } = upstream;
  const stop = new AbortController();
  const { signal } = stop;
  const { upstreamTimeoutMs, upstreamBodyBytesMax } = config;
  const cancel = clock.after(
    upstreamTimeoutMs,
    () => stop.abort(upstreamTimeout(`no response within ${upstreamTimeoutMs} ms`)),
  );
  try {
    const sent = await request({
      url: endpointUrl(upstream, ofDeployments ? { path, ofDeployments } : { path }, model ?? null),
      method,
      headers: {
        ...upstreamHeaders(upstream),
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        accept: "application/json",
        "accept-encoding": "identity",
        "x-request-id": id,
      },
      body: body ?? (method === "POST" ? "" : null),
      signal,
    }).catch((cause) => {
      throw abortError(signal) ?? upstreamUnreachable(cause);
    });
    const response = inflated(sent, signal);
    const bytes = await readUpstreamBody(response.body, upstreamBodyBytesMax, signal);
    return { status: response.status, text: redactKey(decodeUtf8(bytes) ?? "", apiKey) };
  } finally {
    cancel();
  }
}
