import { keepAliveMs, upstreamBodyBytesMax } from "../base/limits.ts";
import type { UpstreamResponse } from "../deps.ts";
import { type AdmittedCall, type InferenceDeps, responseHead, startDeadline } from "./call.ts";
import { abortUpstream, callerDisconnectedEarly } from "./disconnect.ts";
import { createEventReader, type EventReader, eventsReader } from "../upstreams/event_reader.ts";
import { TimedWait } from "../base/timed_wait.ts";
import { peekBody, readUpstreamBody } from "../upstreams/client.ts";
import { invalidUpstreamResponse } from "../upstreams/errors.ts";
import { forward } from "./forward.ts";

/** So long the response waits for the upstream's, so that a refusal is a status. */
const statusPatienceMs = 2_000;

/**
 * The events of an answer's upstream. Throws what the caller is to see as a status; where that is
 * not known after 2 s, gives a reader that throws it. The response begins then: only from a response
 * is it known that its caller has left, and who leaves must not keep the model at work.
 */
export async function openStream(
  services: InferenceDeps,
  call: AdmittedCall,
): Promise<EventReader> {
  const patience = new TimedWait<EventReader>(services.deps.clock);
  const opening = connect(services, call);
  let reader: EventReader | "timeout" | null = null;
  try {
    reader = await patience.wait(opening, statusPatienceMs);
  } finally {
    if (reader !== "timeout") patience.end();
  }
  return reader === "timeout" ? openLate(opening, patience) : reader;
}

/** Gives signs of life until the upstream answers. */
function openLate(opening: Promise<EventReader>, patience: TimedWait<EventReader>): EventReader {
  let reader: EventReader | null = null;
  let hasBegun = false;
  const end = (close: (reader: EventReader) => void) => {
    patience.end();
    opening.then(close, () => {});
  };
  return {
    async next() {
      if (reader) return await reader.next();
      if (!hasBegun) {
        hasBegun = true;
        return "silent";
      }
      const opened = await patience.wait(opening, keepAliveMs);
      if (opened === "timeout") return "silent";
      patience.end();
      reader = opened;
      return await reader.next();
    },
    cancel: () => end((reader) => reader.cancel()),
    finish: () => end((reader) => reader.finish()),
  };
}

async function connect(services: InferenceDeps, call: AdmittedCall): Promise<EventReader> {
  const { meter, request, telemetry } = call;
  if (request.signal.aborted) throw callerDisconnectedEarly;
  telemetry.begin("forward", { streamed: true });
  const stopDeadline = startDeadline(services, call);
  // For small requests this signal also reports a disconnect, and sooner.
  const onDisconnect = () => abortUpstream(call);
  request.signal.addEventListener("abort", onDisconnect);
  try {
    const response = await forward(call, () => void (meter.promptSent = true));
    telemetry.begin("meter");
    return await readerOf(services, call, response);
  } finally {
    request.signal.removeEventListener("abort", onDisconnect);
    stopDeadline();
  }
}

const isEvents = /^\ufeff?\s*(?:data|event|id|retry)?:/;

/** Not every server says that it sends events: those that do look like it. */
async function readerOf(
  { deps: { clock, config } }: InferenceDeps,
  call: AdmittedCall,
  response: UpstreamResponse,
): Promise<EventReader> {
  const { controller: { signal } } = call;
  const asReader = (body: UpstreamResponse["body"]) =>
    createEventReader(body, { clock, idleMs: config.upstreamIdleMs, signal });
  const type = response.header("content-type") ?? "";
  if (/^text\/event-stream/i.test(type)) return asReader(response.body);
  if (/^text\/html/i.test(type)) {
    response.body.cancel();
    throw invalidUpstreamResponse(`a page (${type})`);
  }
  const { start, body } = await peekBody(response.body, signal);
  if (isEvents.test(start)) return asReader(body);
  const bytes = await readUpstreamBody(body, upstreamBodyBytesMax, signal);
  const { format, input, upstream: { apiKey } } = call;
  return eventsReader(
    format.readResponse(bytes, { request: input, head: responseHead(call), apiKey }).events(),
  );
}
