import { type ApiError, loggedFault } from "../base/errors.ts";
import { formatAmount } from "../base/money.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { activityIdOfRequest, type Entry } from "../ledger/entry.ts";
import {
  type AdmittedCall,
  exceedsHold,
  type InferenceDeps,
  mayExceedHold,
  responseHead,
  usageBody,
  watchCall,
} from "./call.ts";
import { abortUpstream, callerDisconnected, endingOf } from "./disconnect.ts";
import type { EventReader } from "../upstreams/event_reader.ts";
import { type BalanceNotice, createBalanceNotice } from "./balance_notice.ts";
import { rateHeaders } from "./rate_limiter.ts";
import { openStream } from "./open_stream.ts";
import type { StreamTransform } from "./format.ts";
import { streamHeaders } from "./stream_headers.ts";
import { releaseCall, settleCall } from "./settle.ts";
import { invalidUpstreamResponse, upstreamDisconnected } from "../upstreams/errors.ts";
import type { TokenUsage } from "../pricing/usage.ts";

/**
 * A streamed answer: forward, then pass on and meter frame by frame at the caller's own pace, and
 * settle before the end is said. Throws what the caller is to see as a status; what fails once the
 * response has begun is a frame with OpenAI's error body.
 */
export async function streamResponse(
  services: InferenceDeps,
  answer: AdmittedCall,
): Promise<Response> {
  const stopWatching = watchCall(services, answer);
  try {
    const notice = await createBalanceNotice(services, answer);
    const reader = await openStream(services, answer);
    const removeStream = services.running.addStream();
    const freeBody = answer.bodies.keep(answer.request);
    const stop = () => {
      removeStream();
      freeBody();
      stopWatching();
    };
    const stream = new AnswerStream({ services, answer, reader, notice, stopWatching: stop });
    return new Response(stream.body(), {
      headers: {
        ...streamHeaders,
        "x-request-id": answer.requestId,
        "x-service-activity-id": activityIdOfRequest(answer.id),
        ...rateHeaders(answer.rateLimits),
      },
    });
  } catch (error) {
    const ending = endingOf(error);
    answer.telemetry.countError(error);
    try {
      if (error === callerDisconnected) {
        await settleCall(services, answer, { usage: await answer.meter.usage(), ending });
      } else await releaseCall(services, answer, ending);
    } finally {
      stopWatching();
    }
    throw error;
  }
}

interface StreamOptions {
  services: InferenceDeps;
  answer: AdmittedCall;
  reader: EventReader;
  notice: BalanceNotice;
  stopWatching: () => void;
}

/** The body of a streamed answer, from its first frame to its charge. */
class AnswerStream {
  readonly #options: StreamOptions;
  readonly #transform: StreamTransform;
  #ended = false;
  /** Its hold was used up before it had ended. */
  #cut = false;
  /** The caller left while it ran. */
  #left = false;
  /** Somebody may still read what is sent. */
  #open = true;
  /** The caller reads, and has not been given anything for it yet; or is about to, at the start. */
  #wanted = true;
  #goOn = () => {};
  #over = Promise.resolve();

  constructor(options: StreamOptions) {
    const { answer, notice } = options;
    this.#options = options;
    this.#transform = answer.format.createStream({
      meter: answer.meter,
      request: answer.input,
      head: responseHead(answer),
      apiKey: answer.upstream.apiKey,
      notice,
    });
  }

  /** Reads from the upstream only when the caller reads from us: memory stays bounded. */
  body(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      start: (controller) => {
        this.#over = this.#run(controller);
        // Nobody will read it, and perhaps nobody would say so.
        if (!this.#options.answer.request.signal.aborted) return;
        this.#leave();
        controller.close();
      },
      pull: () => {
        this.#wanted = true;
        this.#goOn();
      },
      cancel: () => {
        this.#leave();
        return this.#over;
      },
    }, { highWaterMark: 0 });
  }

  /** The caller has gone: the upstream is let go at once, or read to its end to be exact. */
  #leave(): void {
    this.#open = false;
    if (this.#ended) return;
    this.#left = true;
    const { answer } = this.#options;
    abortUpstream(answer);
    this.#goOn();
  }

  /** One loop for the whole answer: what waits for the next frame stays small. */
  async #run(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const send = (frames: string) => {
      if (!this.#open || frames === "") return;
      this.#wanted = false;
      controller.enqueue(encodeUtf8(frames));
    };
    // An answer that is cut ends also when its caller does not read on.
    const { signal } = this.#options.answer.controller;
    signal.addEventListener("abort", () => this.#goOn(), { once: true });
    const fault = await this.#passOn(send).catch((fault: unknown) => fault);
    send(await this.#end(fault));
    if (this.#open) controller.close();
  }

  /** Passes on what comes, to its end; the upstream's fault, or null. */
  async #passOn(send: (frames: string) => void): Promise<ApiError | null> {
    const { reader, answer } = this.#options;
    for (;;) {
      if (!this.#wanted) await this.#untilWanted();
      const read = await reader.next();
      if (read === "end") return null;
      send(read === "silent" ? ": keep-alive\n\n" : this.#transform.takeAll(read));
      const { done, error: fault } = this.#transform;
      if (done || fault) return fault;
      this.#cut = mayExceedHold(answer) && await exceedsHold(answer);
      if (this.#cut) return null;
    }
  }

  /** Until the caller reads on, has left, or is not asked any more because the answer is cut. */
  async #untilWanted(): Promise<void> {
    const { signal } = this.#options.answer.controller;
    if (this.#left || signal.aborted) return;
    await new Promise<void>((resolve) => (this.#goOn = resolve));
  }

  /** Settles, and says how it ended. Runs once. */
  async #end(fault: unknown): Promise<string> {
    this.#ended = true;
    const { services, answer, reader, stopWatching } = this.#options;
    if (this.#transform.done) reader.finish();
    else reader.cancel();
    const broken = fault ?? this.#brokenOff();
    const { id: chat, requestId } = answer;
    if (broken) answer.telemetry.countError(broken);
    if (broken && endingOf(broken).kind === "failed") {
      services.deps.log("warn", "stream_broken", { requestId, chat, ...loggedFault(broken) });
    }
    try {
      const ends = !broken || this.#transform.complete;
      const charged = await this.#charge(broken);
      const balance = charged?.entry.balanceAfter ?? formatAmount(answer.quote.balance);
      const closing = ends ? this.#transform.finish(this.#cut ? "length" : "stop", balance) : "";
      const usage = charged && answer.input.wantsUsage
        ? this.#transform.usageFrame(usageBody(answer, charged))
        : "";
      return closing + usage + (broken ? answer.format.errorFrame(broken) : answer.format.endFrame);
    } catch (error) {
      services.deps.log("error", "stream_failed", { requestId, chat, ...loggedFault(error) });
      return answer.format.errorFrame(error);
    } finally {
      stopWatching();
    }
  }

  /** The fault of a stream that ended without its end, or without anything. */
  #brokenOff(): ApiError | null {
    if (this.#transform.isEmpty) return invalidUpstreamResponse("a stream without an answer");
    if (this.#cut || this.#transform.done || this.#transform.complete) return null;
    return upstreamDisconnected("a stream without its end");
  }

  /** Charges what was produced; nothing, and null, for a fault before anything was. */
  async #charge(fault: unknown): Promise<{ usage: TokenUsage; entry: Entry } | null> {
    const { services, answer } = this.#options;
    if (fault && fault !== callerDisconnected && !answer.meter.producedOutput) {
      await releaseCall(services, answer, endingOf(fault));
      return null;
    }
    const { meter } = answer;
    const usage = await (this.#transform.done ? meter.usage() : meter.usageSoFar());
    // A stream that was read to its end for a caller who left is canceled all the same.
    const ending = endingOf(fault ?? (this.#left && callerDisconnected));
    const { entry } = await settleCall(services, answer, { usage, ending });
    return { usage, entry };
  }
}
