import type { UpstreamRequest, UpstreamResponse } from "../deps.ts";
import { callUpstream } from "../upstreams/client.ts";
import type { AdmittedCall } from "./call.ts";

/** Sends an admitted call to its upstream and returns the 200 response, its body unread. */
export async function forward(
  call: AdmittedCall,
  onSend?: UpstreamRequest["onSend"],
): Promise<UpstreamResponse> {
  const { format, input, upstream, quote: { cap }, meter, id, request, telemetry } = call;
  return await callUpstream({
    upstream,
    path: format.upstreamPath,
    input,
    maxTokensFields: format.maxTokensFields,
    cap,
    countPrompt: (most) => meter.countPrompt(most),
    writeBody: (dialect) => format.writeBody(input, cap, dialect),
    id,
    headers: passedHeaders(request),
    signal: call.controller.signal,
    onSend,
  }, telemetry.span);
}

/** The caller's headers that are passed on to an upstream; no others are. */
function passedHeaders(request: Request): Record<string, string> {
  const beta = request.headers.get("openai-beta");
  return beta && /^[\x20-\x7e]+$/.test(beta) ? { "openai-beta": beta } : {};
}
