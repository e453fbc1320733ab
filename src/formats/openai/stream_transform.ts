import type { Secret } from "../../base/secret.ts";
import type { EventSourceMessage } from "eventsource-parser";
import { ApiError } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import type { StreamOptions, StreamTransform } from "../../inference/format.ts";
import { noticeFor } from "../../inference/balance_notice.ts";
import type { ChoiceShape } from "./choice_shape.ts";
import { hasHead, normalizeHead } from "./head.ts";
import { sseFrame } from "./sse.ts";
import { isOwnerError, readUpstreamError, redactKey } from "../../upstreams/errors.ts";

/**
 * Turns an upstream's events into frames for the caller, and meters them on the way. A chunk that
 * needs no change goes on as its own text; one that lacks its name or time gets them. Usage is held
 * back: the caller's is made at the end.
 */
export class ChoiceStreamTransform implements StreamTransform {
  /** `[DONE]` has come. */
  done = false;
  /** The upstream's error in mid-stream, ready to be told. */
  error: ApiError | null = null;
  readonly #options: StreamOptions;
  readonly #shape: ChoiceShape;
  #head: JsonObject;
  /** What the upstream's own chunk of usage says besides, as some say how long it took. */
  #beside: JsonObject = {};
  #seen = new Set<number>();
  #finished = new Set<number>();
  /** The ends of choices that we have something to say to once all of their text has come. */
  #endings = new Map<number, JsonObject>();
  /** Choices that call a tool. */
  #calling = new Set<number>();

  constructor(options: StreamOptions, shape: ChoiceShape) {
    this.#options = options;
    this.#shape = shape;
    this.#head = { ...options.head, object: shape.chunkObject };
  }

  /** The frames that these events become; often one each, sometimes none. */
  takeAll(events: EventSourceMessage[]): string {
    let frames = "";
    for (const event of events) frames += this.take(event);
    return frames;
  }

  /** The frames that one event becomes. */
  take({ data, event }: EventSourceMessage): string {
    if (this.done || this.error) return "";
    if (data === "[DONE]") {
      this.done = true;
      return "";
    }
    const chunk = parsed(data);
    if (event === "error" || isError(chunk)) {
      this.error = streamError(data, this.#options.apiKey);
      return "";
    }
    // Clients stop at what is not JSON, and no upstream means anything by it.
    if (!isObject(chunk)) return "";
    return this.#takeChunk(chunk, data);
  }

  /** Whether it has ended without a word: no choice, and no usage. */
  get isEmpty(): boolean {
    const { reported, doubtful } = this.#options.meter;
    return this.done && this.#seen.size === 0 && !reported && !doubtful;
  }

  /** Whether every choice has said how it ended. */
  get complete(): boolean {
    return this.#seen.size > 0 && [...this.#seen].every((index) => this.#finished.has(index));
  }

  /**
   * Our last words to each choice, by the balance that is left, and its end. Those that have not
   * ended do so as well, so that clients do not take the stream for broken.
   */
  finish(reason: "stop" | "length", balance: string): string {
    if (this.#seen.size === 0) this.#seen.add(0);
    let frames = "";
    for (const index of this.#seen) {
      if (this.#finished.has(index) && !this.#endings.has(index)) continue;
      this.#finished.add(index);
      const called = reason === "stop" && this.#calling.has(index);
      const end = this.#endings.get(index) ??
        this.#shape.createDelta(index, null, called ? "tool_calls" : reason);
      this.#endings.delete(index);
      const content = noticeFor(end.finish_reason, this.#options.notice)?.(balance);
      if (content) frames += this.#frame(this.#shape.createDelta(index, content, null));
      frames += this.#frame(end);
    }
    return frames;
  }

  /** The upstream's chunk that tells what was used, as `stream_options.include_usage` promises. */
  usageFrame(usage: JsonObject): string {
    return sseFrame(JSON.stringify({ ...this.#beside, ...this.#head, choices: [], usage }));
  }

  #takeChunk(chunk: JsonObject, data: string): string {
    const { meter, request: { wantsUsage } } = this.#options;
    const sent = Array.isArray(chunk.choices) ? chunk.choices : [];
    const choices = sent.map(this.#shape.normalizeDelta).map((choice) =>
      choice && this.#meterChoice(choice)
    )
      .filter((choice) => choice !== null);
    if (!hasHead(chunk, this.#head)) this.#head = normalizeHead(chunk, this.#head);
    if (chunk.usage) meter.addUsage(chunk.usage);
    // Of a chunk that says nothing else, usage is told at the end; nonsense is not told at all.
    if (choices.length === 0 && (chunk.usage || sent.length > 0)) {
      if (chunk.usage) this.#beside = chunk;
      return "";
    }
    const lacking = sent !== chunk.choices || choices.length < sent.length ||
      choices.some((choice, at) => choice !== sent[at]) || !hasHead(chunk, this.#head);
    const asPromised = wantsUsage ? chunk.usage === null : !("usage" in chunk);
    if (asPromised && !lacking) return sseFrame(data);
    const { usage: _usage, ...rest } = chunk;
    const whole = { ...rest, ...this.#head, choices, ...(wantsUsage ? { usage: null } : {}) };
    return sseFrame(JSON.stringify(whole));
  }

  /** Meters a choice. Where a notice follows it, its end is kept for `finish`. */
  #meterChoice(choice: JsonObject): JsonObject | null {
    const { finish_reason: reason } = choice;
    const index = Number(choice.index);
    this.#seen.add(index);
    for (const text of this.#shape.deltaTextsOf(choice)) this.#options.meter.addText(text);
    if (this.#shape.callsTool(choice)) this.#calling.add(index);
    if (typeof reason !== "string") return choice;
    this.#finished.add(index);
    // The last text may come with the end, and from some servers even after it.
    if (noticeFor(reason, this.#options.notice) === null) {
      this.#endings.delete(index);
      return choice;
    }
    const hasDelta = this.#shape.hasDelta(choice);
    this.#endings.set(index, hasDelta ? this.#shape.createDelta(index, null, reason) : choice);
    return hasDelta ? { ...choice, finish_reason: null } : null;
  }

  #frame(choice: JsonObject): string {
    const usage = this.#options.request.wantsUsage ? { usage: null } : {};
    return sseFrame(JSON.stringify({ ...this.#head, choices: [choice], ...usage }));
  }
}

/** An error frame as our caller sees it; the operator's own troubles are for the log. */
function streamError(text: string, apiKey: Secret | null): ApiError {
  const fault = readUpstreamError(502, redactKey(text, apiKey));
  const cause = `an error within the stream: ${fault.message}`;
  if (isOwnerError(fault)) {
    const message = "The upstream failed during the response.";
    return new ApiError(502, { message, code: "upstream_unavailable", cause });
  }
  return new ApiError(502, {
    message: fault.message || "The upstream closed the connection before its response ended.",
    type: fault.type ?? "server_error",
    param: fault.param,
    code: fault.code ?? "upstream_error",
    cause,
  });
}

/** In OpenAI's shape, Google's list of such, or as some servers say it that have no key for it. */
function isError(chunk: Json | undefined): boolean {
  if (Array.isArray(chunk)) return isError(chunk[0]);
  if (!isObject(chunk)) return false;
  if (chunk.error) return true;
  if (chunk.choices !== undefined) return false;
  return chunk.object === "error" || Number(chunk.error_code ?? 0) > 0;
}

function parsed(data: string): Json | undefined {
  try {
    return parseJson(data);
  } catch {
    return undefined;
  }
}
