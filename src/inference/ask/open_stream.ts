import { keepAliveMs } from "../../base/limits.ts";
import { type AskServices, askTargets, mayReroute, startTimers } from "./ask_targets.ts";
import type { AdmittedCall, TextCall } from "../call.ts";
import { createEventReader, type EventReader, eventsReader } from "../../upstreams/event_reader.ts";
import { TimedWait } from "../../base/timed_wait.ts";
import { peekBody } from "../../upstreams/client.ts";
import { beyondOurBounds, invalidUpstreamResponse } from "../../upstreams/errors.ts";
import { afterPreamble } from "./after_preamble.ts";
import { bridgedReader } from "./bridged_reader.ts";
import { forward, type Forwarded } from "./forward.ts";
import { isEvents, readWhole, scanLarge } from "./read_whole.ts";
import type { InferenceServices } from "../services.ts";
import { responseHead } from "../response_head.ts";
import { abortUpstream } from "./abort_policy.ts";
import { callerDisconnectedEarly } from "../caller_left.ts";

/** The services that opening a stream needs. */
type OpenServices = AskServices & Pick<InferenceServices, "responseMemory">;

/** How long we wait for the upstream before our response begins, so that an error is a status. */
const statusWaitMs = 2_000;
/** How long we wait where another target could still be asked, and no timeout of its own is set. */
const rerouteWaitMs = 25_000;

/**
 * Opens the upstream's stream of events. Throws an error that becomes a status. When the upstream
 * has not responded after 2 s, returns a reader that throws the error later: our response then
 * begins, since only a response reveals that its client disconnected, and the model should not keep
 * working for no one.
 */
export async function openStream(
  services: OpenServices,
  call: TextCall,
): Promise<EventReader> {
  const statusWait = new TimedWait<EventReader>(services.deps.clock);
  const opening = connect(services, call);
  let reader: EventReader | "timeout" | null = null;
  try {
    do reader = await statusWait.wait(opening, statusWaitMs); while (
      reader === "timeout" && isWorthWaiting(services, call)
    );
    call.hasBegun = true;
  } finally {
    if (reader !== "timeout") statusWait.end();
  }
  return reader === "timeout" ? openWithKeepAlive(opening, statusWait) : reader;
}

/**
 * Whether to wait longer for this target, because no other one can be asked once our response has
 * begun.
 */
function isWorthWaiting(services: Pick<InferenceServices, "deps">, call: AdmittedCall): boolean {
  const { firstByteMs = rerouteWaitMs } = call.attempt.target.upstream.timeouts;
  const waited = services.deps.clock.elapsed() - call.attempt.beganAt;
  const hasFailed = call.failed.length > 0;
  if (hasFailed && waited < statusWaitMs) return true;
  return (hasFailed || call.untried.length > 0) && mayReroute(services, call) &&
    waited < firstByteMs + statusWaitMs;
}

/** Reports silence until the upstream responds, so that keep-alives are sent. */
function openWithKeepAlive(
  opening: Promise<EventReader>,
  statusWait: TimedWait<EventReader>,
): EventReader {
  let reader: EventReader | null = null;
  let hasBegun = false;
  const end = (close: (reader: EventReader) => void) => {
    statusWait.end();
    opening.then(close, () => {});
  };
  return {
    async next() {
      if (reader) return await reader.next();
      if (!hasBegun) {
        hasBegun = true;
        return "silent";
      }
      const opened = await statusWait.wait(opening, keepAliveMs);
      if (opened === "timeout") return "silent";
      statusWait.end();
      reader = opened;
      return await reader.next();
    },
    cancel: () => end((reader) => reader.cancel()),
    finish: () => end((reader) => reader.finish()),
  };
}

/** Connects, and waits for output: an error before any is still a status. */
async function connect(services: OpenServices, call: TextCall): Promise<EventReader> {
  const { request } = call;
  if (request.signal.aborted) throw callerDisconnectedEarly;
  // For small requests this signal also reports a disconnect, and sooner.
  const onDisconnect = () => abortUpstream(call);
  request.signal.addEventListener("abort", onDisconnect);
  try {
    return await askTargets(
      services,
      call,
      async () => await afterPreamble(call, await openReader(services, call)),
    );
  } finally {
    request.signal.removeEventListener("abort", onDisconnect);
  }
}

async function openReader(
  services: Pick<InferenceServices, "deps" | "responseMemory">,
  call: TextCall,
): Promise<EventReader> {
  const { telemetry, cache, attempt: { meter, target } } = call;
  const { upstream: { name: upstream } } = target;
  if (cache?.hit) {
    meter.isAnswered = true;
    return eventsReader(cache.hit.complete.events());
  }
  telemetry.begin("forward", { streamed: true, upstream });
  const onHead = startTimers(services, call);
  try {
    const response = await forward(call);
    telemetry.begin("meter");
    return await readerOf(services, call, response);
  } finally {
    onHead();
  }
}

/**
 * The length of an event's line, in characters, beyond which it is passed on as it arrives, and
 * never parsed.
 */
const passedOnChars = 1024 * 1024;

/**
 * Reads events, also from a server that does not declare them, and JSON from one that ignores
 * `stream`.
 */
async function readerOf(
  services: Pick<InferenceServices, "deps" | "responseMemory">,
  call: TextCall,
  response: Forwarded,
): Promise<EventReader> {
  const { deps: { clock, config: { upstreamIdleMs: idleMs, upstreamEventBytesMax } } } = services;
  const { controller: { signal }, target } = call.attempt;
  const memory = services.responseMemory.share();
  const options = { clock, idleMs, eventCharsMax: upstreamEventBytesMax, memory, signal };
  const { bridge } = response;
  const asReader = (body: Forwarded["body"]) => {
    if (!bridge) return createEventReader(body, { ...options, lineCharsMax: passedOnChars });
    const { input: request, upstream: { apiKey } } = target;
    return bridgedReader(createEventReader(body, options), {
      call,
      bridge,
      options: { request, head: responseHead(call), apiKey },
    });
  };
  const type = response.header("content-type") ?? "";
  if (/^text\/event-stream/i.test(type)) return asReader(response.body);
  if (/^text\/html/i.test(type)) {
    response.body.cancel();
    throw invalidUpstreamResponse(`a page (${type})`);
  }
  const { start, body } = await peekBody(response.body, signal);
  if (isEvents.test(start)) return asReader(body);
  try {
    const whole = { ...response, format: call.format, body, memory };
    const { complete, large } = await readWhole(services, call, whole);
    if (complete) return eventsReader(complete.events());
    await scanLarge(call, large, bridge?.format);
    throw beyondOurBounds("a body in place of a stream, which is too large to be read");
  } finally {
    memory.release();
  }
}
