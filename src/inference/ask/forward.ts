import type { UpstreamResponse } from "../../deps.ts";
import { memoizeByObject } from "../../base/memoize_by_object.ts";
import { callUpstream } from "../../upstreams/client.ts";
import { endpointNotServed } from "../../upstreams/errors.ts";
import type { AdmittedCall } from "../call.ts";
import type { Bridge, Format, PassedFormat } from "../format.ts";
import type { ModelRequest } from "../model_request.ts";
import { keepsTurns } from "../kept/kept_responses.ts";

/** A 200 response, its body unread, and the bridge that reads it where the format is another. */
export interface Forwarded extends UpstreamResponse {
  bridge: Bridge | null;
}

/**
 * Sends the call to the target of the current attempt, by a bridge where that target does not speak
 * the caller's format.
 */
export async function forward(call: AdmittedCall): Promise<Forwarded> {
  const { attempt, format, id, request } = call;
  const { meter, target: { input, upstream, quote: { cap } } } = attempt;
  const bridges = bridgesOf(format);
  const bridgeTo = (name: string) => bridges.find((bridge) => bridge.format.name === name) ?? null;
  const formatOf = (name: string) => bridgeTo(name)?.format ?? format;
  const sent = withoutFields(input, upstream.fields.refused);
  const { response, dialect } = await callUpstream({
    upstream,
    endpoint: (dialect) => formatOf(dialect.format),
    input,
    targets: targetsOf(format),
    cap,
    countPrompt: (most) => meter.countPrompt(most),
    writeBody: (dialect) => (bridgeTo(dialect.format) ?? format).writeBody(sent, cap, dialect),
    id,
    ...(format.kind === "passed" ? asPassed(format) : {}),
    headers: (dialect) => ({
      ...formatOf(dialect.format).upstreamHeaders?.(upstream.apiKey),
      ...(dialect.format === format.name ? passedHeaders(format, request) : {}),
    }),
    signal: attempt.controller.signal,
    onSend: (sent) => void (meter.promptSent = sent),
  }, call.telemetry.span);
  meter.isAnswered = true;
  const bridge = bridgeTo(dialect.format);
  attempt.isBridged = bridge !== null;
  if (bridge && format.kept && !keepsTurns(call.caller.snapshot.project)) {
    attempt.target = { ...attempt.target, input: notStored(attempt.target.input) };
  }
  return { ...response, bridge };
}

/** Returns the request as if its caller had asked that its response is not kept. */
function notStored(request: ModelRequest): ModelRequest {
  return { ...request, body: { ...request.body, store: false } };
}

const targetsOf = memoizeByObject((format: Format) =>
  [format, ...bridgesOf(format).map((bridge) => bridge.format)].map((target) => ({
    format: target.name,
    maxTokensFields: target.maxTokensFields,
  }))
);

function bridgesOf(format: Format): readonly Bridge[] {
  return format.kind === "text" ? format.bridges : [];
}

/** Accepted types, and the error for a missing endpoint, where a response passes on as it is. */
function asPassed({ bodies, path }: PassedFormat) {
  return {
    accept: bodies ? "*/*" : undefined,
    unserved: () => endpointNotServed(path),
  };
}

/** Returns the request without fields that its upstream refuses. */
function withoutFields(request: ModelRequest, refused: readonly string[] = []): ModelRequest {
  if (!refused.some((name) => Object.hasOwn(request.body, name))) return request;
  const left = Object.entries(request.body).filter(([name]) => !refused.includes(name));
  return { ...request, body: Object.fromEntries(left) };
}

/** Returns the caller's headers that are passed on to an upstream; no others are. */
export function passedHeaders(
  { passedHeaders: names }: Format,
  request: Request,
): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of names) {
    const value = request.headers.get(name);
    if (value && /^[\x20-\x7e]+$/.test(value)) passed[name] = value;
  }
  return passed;
}
