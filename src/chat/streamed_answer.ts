import { ApiError } from "../base/errors.ts";
import { upstreamBodyBytesMax } from "../base/limits.ts";
import { activityOfRequest } from "../ledger/entry.ts";
import { cutMessage } from "../paywall/message.ts";
import {
  type Answer,
  answerHead,
  type ChatRooms,
  release,
  settle,
  startDeadline,
  usageBody,
  watch,
} from "./answer.ts";
import { asEvents, Chunks } from "./chunks.ts";
import { createEventReader, type EventReader } from "./event_reader.ts";
import { outputTokensFor } from "./pricing.ts";
import { sseDone, sseFrame, streamHeaders } from "./reply.ts";
import { callUpstream, readBody } from "./upstream.ts";
import { badUpstream } from "./upstream_error.ts";
import { inputOf } from "./usage.ts";
import { passedHeaders, readCompletion } from "./whole_answer.ts";

const encoder = new TextEncoder();

/**
 * A streamed answer: forward, then pass on and meter frame by frame at the caller's own pace, and
 * settle before the end is said. Throws what the caller is to see while it can still be a status;
 * later faults are a frame with OpenAI's error body.
 */
export async function streamedAnswer(rooms: ChatRooms, answer: Answer): Promise<Response> {
  const stopWatching = watch(rooms, answer);
  try {
    const reader = await forward(rooms, answer);
    const url = answer.quote.clamped
      ? await rooms.topUpUrl(answer.caller.snapshot.project, answer.user)
      : null;
    const stream = new AnswerStream({ rooms, answer, reader, topUpUrl: url, stopWatching });
    return new Response(stream.body(), {
      headers: {
        ...streamHeaders,
        "x-request-id": answer.requestId,
        "x-service-activity-id": activityOfRequest(answer.id),
      },
    });
  } catch (error) {
    if (error === callerLeft) await settle(rooms, answer, await answer.meter.usage());
    else await release(rooms, answer);
    stopWatching();
    throw error;
  }
}

/** The reason of an abort when the caller has gone; nobody reads it. */
const callerLeft = new ApiError(499, { message: "The caller closed the connection." });

async function forward(rooms: ChatRooms, answer: Answer): Promise<EventReader> {
  const { upstream, chat, quote, requestId, request, controller } = answer;
  const { signal } = controller;
  const stopDeadline = startDeadline(rooms, answer);
  const leave = () => controller.abort(callerLeft);
  // Until there is a response body, whose `cancel` is the only sure sign that the caller left.
  request.signal.addEventListener("abort", leave);
  try {
    const headers = passedHeaders(request);
    const response = await callUpstream({
      upstream,
      chat,
      cap: quote.cap,
      requestId,
      headers,
      signal,
    });
    const type = response.headers.get("content-type") ?? "";
    if (response.body && /^text\/event-stream/i.test(type)) {
      const idleMs = rooms.deps.config.upstreamIdleMs;
      return createEventReader(response.body, { clock: rooms.deps.clock, idleMs, signal });
    }
    if (/^text\/html/i.test(type)) {
      await response.body?.cancel();
      throw badUpstream(`a page (${type})`);
    }
    const bytes = await readBody(response, upstreamBodyBytesMax, signal);
    return replayEvents(asEvents(readCompletion(bytes, answer)));
  } finally {
    request.signal.removeEventListener("abort", leave);
    stopDeadline();
  }
}

function replayEvents(events: ReturnType<typeof asEvents>): EventReader {
  let read = false;
  return {
    next() {
      if (read) return Promise.resolve("end");
      read = true;
      return Promise.resolve(events);
    },
    cancel() {},
  };
}

interface StreamOptions {
  rooms: ChatRooms;
  answer: Answer;
  reader: EventReader;
  /** Where to top up, when the balance pays for less than was asked. */
  topUpUrl: string | null;
  stopWatching: () => void;
}

/** The body of a streamed answer, from its first frame to its charge. */
class AnswerStream {
  readonly #options: StreamOptions;
  readonly #chunks: Chunks;
  #ended = false;
  #left = false;
  #step: Promise<string | null> = Promise.resolve("");

  constructor(options: StreamOptions) {
    const { answer, topUpUrl } = options;
    this.#options = options;
    this.#chunks = new Chunks({
      meter: answer.meter,
      wantsUsage: answer.chat.wantsUsage,
      choices: answer.chat.choices,
      head: { ...answerHead(answer), object: "chat.completion.chunk" },
      cutText: topUpUrl && cutMessage(topUpUrl),
    });
  }

  /** Reads from the upstream only when the caller reads from us: memory stays bounded. */
  body(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      pull: async (controller) => {
        for (;;) {
          this.#step = this.#next();
          const frames = await this.#step;
          if (this.#left) return;
          if (frames === null) return controller.close();
          if (frames !== "") return controller.enqueue(encoder.encode(frames));
        }
      },
      cancel: () => this.#leave(),
    }, { highWaterMark: 0 });
  }

  /** The caller has gone: the upstream is let go at once, or read to its end to be exact. */
  async #leave(): Promise<void> {
    if (this.#ended) return;
    this.#left = true;
    if (abortPolicy(this.#options.answer) === "estimate") {
      this.#options.answer.controller.abort(callerLeft);
    }
    await this.#step.catch(() => {});
    while (await this.#next() !== null);
  }

  /** The next frames: "" for none yet, null after the end. */
  async #next(): Promise<string | null> {
    if (this.#ended) return null;
    const { reader } = this.#options;
    try {
      const read = await reader.next();
      if (read === "silent") return ": keep-alive\n\n";
      if (read === "end") return await this.#end(null);
      let frames = "";
      for (const event of read) frames += this.#chunks.take(event);
      if (this.#chunks.error) return frames + await this.#end(this.#chunks.error);
      if (this.#chunks.done) return frames + await this.#end(null);
      if (await this.#usedUp()) {
        return frames + this.#chunks.finish("length") + await this.#end(null);
      }
      return frames;
    } catch (error) {
      return await this.#end(error);
    }
  }

  /** Whether our own count says that the answer has used up its hold. */
  async #usedUp(): Promise<boolean> {
    const { meter, quote, terms, chat } = this.#options.answer;
    if (meter.surelyWithin(quote.cap * chat.choices)) return false;
    const input = inputOf(await meter.usage());
    const output = await meter.countOutput();
    const spendable = quote.amount;
    return output >= outputTokensFor(terms.price, { spendable, input, choices: 1 });
  }

  /** Settles, and says how it ended. Runs once. */
  async #end(fault: unknown): Promise<string> {
    this.#ended = true;
    const { rooms, answer, reader, stopWatching } = this.#options;
    reader.cancel();
    try {
      const closing = fault ? "" : this.#close();
      const charged = await this.#charge(fault);
      return closing + charged + (fault ? errorFrame(fault) : sseDone);
    } catch (error) {
      rooms.deps.log("error", "stream_failed", { requestId: answer.id, error: String(error) });
      return errorFrame(error);
    } finally {
      stopWatching();
    }
  }

  /** Frames that a stream lacks which ended well. Throws when it broke off. */
  #close(): string {
    const chunks = this.#chunks;
    if (chunks.complete) return "";
    if (chunks.done) return chunks.finish("stop");
    throw badUpstream("a stream without its end", "The model's server broke off its answer.");
  }

  /** Charges what was produced; nothing for a fault before anything was. */
  async #charge(fault: unknown): Promise<string> {
    const { rooms, answer } = this.#options;
    if (fault && fault !== callerLeft && !answer.meter.producedOutput) {
      await release(rooms, answer);
      return "";
    }
    const usage = await answer.meter.usage();
    await settle(rooms, answer, usage);
    return answer.chat.wantsUsage ? this.#chunks.usageFrame(usageBody(answer, usage)) : "";
  }
}

/** What an abandoned stream costs: hidden reasoning cannot be counted, so it is drained. */
function abortPolicy({ terms, upstream, chat }: Answer): "estimate" | "drain" {
  const hidden = terms.reasoning || chat.reasons;
  return terms.onAbort ?? upstream.onAbort ?? (hidden ? "drain" : "estimate");
}

function errorFrame(error: unknown): string {
  const told = error instanceof ApiError
    ? error
    : new ApiError(500, { message: "The answer could not be completed.", code: "internal_error" });
  return sseFrame(JSON.stringify(told.body()));
}
