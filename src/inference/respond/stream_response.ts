import type { EventSourceMessage } from "eventsource-parser";
import { type ApiError, errorFields } from "../../base/errors.ts";
import { formatAmount } from "../../base/money.ts";
import { TimeSlice } from "../../base/time_slice.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { activityIdOfRequest } from "../../ledger/entry.ts";
import { type EventRead, type EventReader, isLargePart } from "../../upstreams/event_reader.ts";
import {
  invalidUpstreamResponse,
  isOurFault,
  upstreamDisconnected,
} from "../../upstreams/errors.ts";
import { rateHeaders } from "../admit/rate_limiter.ts";
import { abortUpstream } from "../ask/abort_policy.ts";
import { openStream } from "../ask/open_stream.ts";
import type { TextCall } from "../call.ts";
import { callerDisconnected } from "../caller_left.ts";
import { cutBy, type Ending, toldAs } from "../finish/ending.ts";
import { finishCall } from "../finish/finish_call.ts";
import type { CompleteResponse, EventAssembler, StreamTransform } from "../upstream_response.ts";
import { exceedsHold, mayExceedHold } from "../meter/exceeds_hold.ts";
import { responseHead } from "../response_head.ts";
import type { RespondServices } from "./respond_services.ts";
import type { BalanceNotice } from "../notice.ts";
import { createBalanceNotice } from "./balance_notice.ts";
import { failCall } from "./fail_call.ts";
import { PacedBody } from "./paced_body.ts";
import { streamHeaders } from "./stream_headers.ts";
import { stayOpen, watchCall } from "./watch_call.ts";
import { targetHeaders, usageBody } from "./written_response.ts";

/**
 * A streamed response: forward the call, then pass on and meter each event at the caller's pace,
 * and settle before the last frame. Throws an error that can still be a status; an error after the
 * response has begun is sent as the format's error frame.
 */
export async function streamResponse(
  services: RespondServices,
  call: TextCall,
): Promise<Response> {
  const stopWatching = watchCall(services, call);
  try {
    const notice = await createBalanceNotice(services, call);
    const reader = await openStream(services, call);
    const stream = new ResponseStream({ services, call, reader, notice });
    const headers = new Headers({
      ...streamHeaders,
      "x-request-id": call.requestId,
      "x-service-activity-id": activityIdOfRequest(call.id),
      ...rateHeaders(call.rateLimits),
      ...targetHeaders(call),
    });
    const leave = stayOpen(services, call);
    // Nothing that may fail stands between here and the start of the response.
    const body = stream.body(() => {
      leave();
      stopWatching();
    });
    return new Response(body, { headers });
  } catch (error) {
    try {
      return await failCall(services, call, cutBy(error, false));
    } finally {
      stopWatching();
    }
  }
}

/** How long usage may come after the last event. */
const lateUsageMs = 250;

interface StreamOptions {
  services: RespondServices;
  call: TextCall;
  reader: EventReader;
  notice: BalanceNotice;
}

/** The body of a streamed response, from its first frame to its charge. */
class ResponseStream {
  readonly #options: StreamOptions;
  readonly #transform: StreamTransform;
  /** Puts the response together for the project's cache; null where it is not kept. */
  #assembler: EventAssembler | null = null;
  readonly #body: PacedBody;
  #ended = false;
  /** The output used up the hold before the stream ended. */
  #exceededHold = false;
  /** The client disconnected while the stream ran. */
  #disconnected = false;
  #slice: TimeSlice | null = null;
  /** A part of a large event was sent, and not yet its end. */
  #isWithinEvent = false;

  constructor(options: StreamOptions) {
    const { call, notice, services: { deps: { clock } } } = options;
    const { meter, controller: { signal }, target } = call.attempt;
    const { input: request, upstream: { apiKey } } = target;
    this.#options = options;
    this.#transform = call.format.createStream({
      meter,
      request,
      head: responseHead(call),
      apiKey,
      notice,
    });
    if (call.cache && !call.cache.hit) {
      this.#assembler = call.format.createAssembler({ request, head: responseHead(call), apiKey });
    }
    this.#body = new PacedBody({
      clock,
      request: call.request,
      signal,
      onDisconnect: () => this.#onDisconnect(),
    });
  }

  /**
   * Reads from the upstream only when the caller reads from us: memory stays bounded. `onEnd` is
   * called after the charge.
   */
  body(onEnd: () => void): ReadableStream<Uint8Array> {
    return this.#body.start(() => this.#run().finally(onEnd));
  }

  /** Aborts the upstream, or keeps reading it to charge exactly, depending on the abort policy. */
  #onDisconnect(): void {
    if (this.#ended) return;
    this.#disconnected = true;
    abortUpstream(this.#options.call);
  }

  /** One loop for the whole stream, so that little memory waits for the next event. */
  async #run(): Promise<void> {
    const { services, call } = this.#options;
    try {
      const reason = await this.#forwardEvents().catch((reason: unknown) => reason);
      this.#send(await this.#end(reason));
      this.#body.close();
    } catch (error) {
      await finishCall(services, call, cutBy(error, true)).catch(() => {});
      this.#body.breakOff(error);
    }
  }

  #send(frames: string): void {
    if (frames !== "" && this.#body.isReadable) this.#body.send(encodeUtf8(frames));
  }

  /** Forwards events until the stream ends; returns the upstream's error, or null. */
  async #forwardEvents(): Promise<ApiError | null> {
    const { reader, call } = this.#options;
    const { meter } = call.attempt;
    for (;;) {
      if (!this.#body.hasDemand) await this.#body.untilDemand();
      const read = await reader.next();
      if (read === "end") return null;
      if (read !== "silent") meter.bodyBegun = true;
      this.#send(this.#framesOf(read));
      // Parts arrive as fast as they are read: others run between any two of all streams.
      if (this.#isWithinEvent) await this.#yield();
      const { done, error: reason } = this.#transform;
      if (done && !meter.isReported && read !== "silent") await this.#readLateUsage();
      if (done || reason) return reason;
      this.#exceededHold = mayExceedHold(call) && await exceedsHold(call);
      if (this.#exceededHold) return null;
    }
  }

  #yield(): Promise<void> {
    this.#slice ??= new TimeSlice(this.#options.services.deps.clock);
    return this.#slice.yield();
  }

  #framesOf(read: Exclude<EventRead, "end">): string {
    if (read === "silent") {
      // Nothing may stand between the parts of an event.
      return this.#isWithinEvent ? "" : ": keep-alive\n\n";
    }
    if (!isLargePart(read)) {
      if (this.#assembler) this.#assemble(read);
      return this.#transform.takeAll(read);
    }
    this.#assembler = null;
    this.#isWithinEvent = !read.isLast;
    return this.#transform.takeLarge(read);
  }

  #assemble(events: EventSourceMessage[]): void {
    try {
      for (const event of events) this.#assembler?.add(event, { usageOnly: false });
    } catch {
      this.#assembler = null;
    }
  }

  /** The whole response for the project's cache; null where it is not one. */
  #assembled(): CompleteResponse | null {
    try {
      return this.#assembler?.complete() ?? null;
    } catch {
      return null;
    }
  }

  /** Reads what comes right after the last event: some servers report usage there. */
  async #readLateUsage(): Promise<void> {
    const { reader, services: { deps: { clock } } } = this.#options;
    const stop = new AbortController();
    const pause = clock.sleep(lateUsageMs, stop.signal).catch(() => {});
    const late = await Promise.race([reader.next().catch(() => "end" as const), pause]);
    stop.abort();
    if (!Array.isArray(late)) return;
    if (this.#assembler) this.#assemble(late);
    this.#transform.takeAll(late);
  }

  /** Finishes the call and returns the last frames. Runs once. */
  async #end(reason: unknown): Promise<string> {
    this.#ended = true;
    const { services, call, reader } = this.#options;
    if (this.#transform.done) reader.finish();
    else reader.cancel();
    const error = reason ?? this.#unfinishedError();
    this.#log("stream_broken", error);
    try {
      const ends = error === null || this.#transform.complete;
      const gap = this.#isWithinEvent ? "\n\n" : "";
      const charged = await finishCall(services, call, this.#endingBy(error));
      const { quote } = call.attempt.target;
      const balance = charged?.entry.balanceAfter ?? formatAmount(quote.balance);
      const closing = ends
        ? this.#transform.finish(this.#exceededHold ? "length" : "stop", balance)
        : "";
      const usage = charged && call.input.wantsUsage
        ? this.#transform.usageFrame(usageBody(call.format, call, charged))
        : "";
      const last = error === null ? call.format.endFrame : this.#errorFrame(error);
      return gap + closing + usage + last;
    } catch (fault) {
      this.#log("stream_failed", fault);
      await finishCall(services, call, cutBy(fault, true));
      return this.#errorFrame(fault);
    }
  }

  #endingBy(error: unknown): Ending {
    const { done, kept = null } = this.#transform;
    const isKept = error === null && !this.#disconnected && !this.#exceededHold;
    return {
      // A stream that was drained after a disconnect counts as canceled all the same.
      error: error ?? (this.#disconnected ? callerDisconnected : null),
      isDelivered: true,
      isWhole: done,
      kept,
      cacheable: isKept ? this.#assembled() : null,
      stored: null,
    };
  }

  #log(event: "stream_broken" | "stream_failed", error: unknown): void {
    const { services: { deps }, call: { id: chat, requestId } } = this.#options;
    const isBroken = event === "stream_broken";
    if (isBroken && toldAs(error).kind !== "failed") return;
    const level = isBroken && !isOurFault(error) ? "warn" : "error";
    deps.log(level, event, { requestId, chat, ...errorFields(error) });
  }

  #errorFrame(error: unknown): string {
    return this.#transform.errorFrame?.(error) ?? this.#options.call.format.errorFrame(error);
  }

  /** The error of a stream that ended without its last event, or without any output. */
  #unfinishedError(): ApiError | null {
    if (this.#transform.isEmpty) return invalidUpstreamResponse("a stream without output");
    if (this.#exceededHold || this.#transform.done || this.#transform.complete) return null;
    return upstreamDisconnected("a stream without its end");
  }
}
