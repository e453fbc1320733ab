import { keepAliveMs, upstreamBodyBytesMax } from "../base/limits.ts";
import type { UpstreamResponse } from "../deps.ts";
import { type AdmittedCall, type InferenceDeps, startDeadline } from "./call.ts";
import { abortUpstream, callerDisconnectedEarly } from "./disconnect.ts";
import { completionAsEvents } from "../formats/chat/stream_transform.ts";
import { createEventReader, type EventReader, eventsReader } from "../upstreams/event_reader.ts";
import { TimedWait } from "../base/timed_wait.ts";
import { callUpstream, peekBody, readUpstreamBody } from "../upstreams/client.ts";
import { invalidUpstreamResponse } from "../upstreams/errors.ts";
import { passedHeaders, readCompletion } from "./whole_response.ts";

/** So long the response waits for the upstream's, so that a refusal is a status. */
const statusPatienceMs = 2_000;

/**
 * The events of an answer's upstream. Throws what the caller is to see as a status; where that is
 * not known after 2 s, gives a reader that throws it. The response begins then: only from a response
 * is it known that its caller has left, and who leaves must not keep the model at work.
 */
export async function openStream(
  services: InferenceDeps,
  answer: AdmittedCall,
): Promise<EventReader> {
  const patience = new TimedWait<EventReader>(services.deps.clock);
  const opening = forward(services, answer);
  let reader: EventReader | "late" | null = null;
  try {
    reader = await patience.wait(opening, statusPatienceMs);
  } finally {
    if (reader !== "late") patience.end();
  }
  return reader === "late" ? openLate(opening, patience) : reader;
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
      if (opened === "late") return "silent";
      patience.end();
      reader = opened;
      return await reader.next();
    },
    cancel: () => end((reader) => reader.cancel()),
    finish: () => end((reader) => reader.finish()),
  };
}

async function forward(services: InferenceDeps, answer: AdmittedCall): Promise<EventReader> {
  const { upstream, preparedBody, chat, quote, meter, requestId, request, telemetry } = answer;
  const { signal } = answer.controller;
  if (request.signal.aborted) throw callerDisconnectedEarly;
  telemetry.begin("forward", { streamed: true });
  const stopDeadline = startDeadline(services, answer);
  // Of small requests also this tells, and sooner.
  const leave = () => abortUpstream(answer);
  request.signal.addEventListener("abort", leave);
  try {
    const headers = passedHeaders(request);
    const onSend = () => void (meter.promptSent = true);
    const asked = { upstream, firstRequest: preparedBody, chat, cap: quote.cap, meter };
    const call = { ...asked, requestId, headers, signal, onSend };
    const response = await callUpstream(call, telemetry.span);
    telemetry.begin("meter");
    return await readerOf(services, answer, response);
  } finally {
    request.signal.removeEventListener("abort", leave);
    stopDeadline();
  }
}

const isEvents = /^\ufeff?\s*(?:data|event|id|retry)?:/;

/** Not every server says that it sends events: those that do look like it. */
async function readerOf(
  { deps: { clock, config } }: InferenceDeps,
  answer: AdmittedCall,
  response: UpstreamResponse,
): Promise<EventReader> {
  const { controller: { signal } } = answer;
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
  return eventsReader(completionAsEvents(readCompletion(bytes, answer)));
}
