import { ApiError } from "../base/errors.ts";
import { upstreamBodyBytesMax } from "../base/limits.ts";
import { activityOfRequest } from "../ledger/entry.ts";
import {
  abortPolicy,
  type Answer,
  answerHead,
  type ChatRooms,
  lastWords,
  startDeadline,
  usageBody,
  watch,
} from "./answer.ts";
import { callerLeft, callerLeftEarly, endingOf } from "./caller_left.ts";
import { asEvents, Chunks } from "./chunks.ts";
import { createEventReader, type EventReader, replayEvents } from "./event_reader.ts";
import { rateHeaders } from "./limits.ts";
import { outputTokensFor } from "./pricing.ts";
import { errorFrame, sseDone, streamHeaders } from "./reply.ts";
import { release, settle } from "./settle.ts";
import { callUpstream, readBody } from "./upstream.ts";
import { badUpstream, upstreamBrokeOff } from "./upstream_error.ts";
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
    const words = await lastWords(rooms, answer);
    const stream = new AnswerStream({ rooms, answer, reader, words, stopWatching });
    return new Response(stream.body(), {
      headers: {
        ...streamHeaders,
        "x-request-id": answer.requestId,
        "x-service-activity-id": activityOfRequest(answer.id),
        ...rateHeaders(answer.rates),
      },
    });
  } catch (error) {
    const ending = endingOf(error);
    answer.steps.fault(error);
    if (error === callerLeft) {
      await settle(rooms, answer, { usage: await answer.meter.usage(), ending });
    } else await release(rooms, answer, ending);
    stopWatching();
    throw error;
  }
}

async function forward(rooms: ChatRooms, answer: Answer): Promise<EventReader> {
  const { upstream, chat, quote, requestId, request, steps, controller } = answer;
  const { signal } = controller;
  if (request.signal.aborted) throw callerLeftEarly;
  steps.begin("forward", { streamed: true });
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
    }, steps.span);
    steps.begin("meter");
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

interface StreamOptions {
  rooms: ChatRooms;
  answer: Answer;
  reader: EventReader;
  words: Awaited<ReturnType<typeof lastWords>>;
  stopWatching: () => void;
}

/** The body of a streamed answer, from its first frame to its charge. */
class AnswerStream {
  readonly #options: StreamOptions;
  readonly #chunks: Chunks;
  #ended = false;
  #left = false;
  /** Frames for the caller that came while it was not reading. */
  #rest = "";
  #turn: Promise<string | null> = Promise.resolve("");

  constructor(options: StreamOptions) {
    const { answer, words } = options;
    this.#options = options;
    this.#chunks = new Chunks({
      meter: answer.meter,
      wantsUsage: answer.chat.wantsUsage,
      choices: answer.chat.choices,
      head: { ...answerHead(answer), object: "chat.completion.chunk" },
      apiKey: answer.upstream.apiKey,
      ...words,
    });
    // An answer that is cut ends also when its caller does not read on.
    const { signal } = answer.controller;
    signal.addEventListener("abort", () => this.#drive(), { once: true });
    if (signal.aborted) this.#drive();
  }

  /** Reads from the upstream only when the caller reads from us: memory stays bounded. */
  body(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      pull: async (controller) => {
        for (;;) {
          const next = await this.#inTurn();
          const frames = this.#rest + (next ?? "");
          this.#rest = "";
          if (this.#left) return;
          if (frames !== "") controller.enqueue(encoder.encode(frames));
          if (next === null) return controller.close();
          if (frames !== "") return;
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
    await this.#drive();
  }

  /** Goes on to the end, whether the caller reads or not. */
  async #drive(): Promise<void> {
    for (;;) {
      const frames = await this.#inTurn();
      if (frames === null) return;
      if (!this.#left) this.#rest += frames;
    }
  }

  /** One step after the other, whoever asks for it. */
  #inTurn(): Promise<string | null> {
    this.#turn = this.#turn.then(() => this.#next());
    return this.#turn;
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
    const broken = fault ?? this.#brokenOff();
    const { id: chat, requestId } = answer;
    if (broken) answer.steps.fault(broken);
    if (broken && broken !== callerLeft) {
      const cause = String(broken instanceof ApiError ? broken.cause : broken);
      rooms.deps.log("warn", "stream_broken", { requestId, chat, cause });
    }
    try {
      const closing = broken ? "" : this.#chunks.finish("stop");
      const charged = await this.#charge(broken);
      return closing + charged + (broken ? errorFrame(broken) : sseDone);
    } catch (error) {
      rooms.deps.log("error", "stream_failed", { requestId, chat, error: String(error) });
      return errorFrame(error);
    } finally {
      stopWatching();
    }
  }

  /** The fault of a stream that ended without its end. */
  #brokenOff(): ApiError | null {
    if (this.#chunks.done || this.#chunks.complete) return null;
    return upstreamBrokeOff("a stream without its end");
  }

  /** Charges what was produced; nothing for a fault before anything was. */
  async #charge(fault: unknown): Promise<string> {
    const { rooms, answer } = this.#options;
    if (fault && fault !== callerLeft && !answer.meter.producedOutput) {
      await release(rooms, answer, endingOf(fault));
      return "";
    }
    const usage = await answer.meter.usage();
    // A stream that was read to its end for a caller who left is canceled all the same.
    const ending = endingOf(fault ?? (this.#left && callerLeft));
    const { entry } = await settle(rooms, answer, { usage, ending });
    return answer.chat.wantsUsage
      ? this.#chunks.usageFrame(usageBody(answer, { usage, entry }))
      : "";
  }
}
