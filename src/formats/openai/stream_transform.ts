import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../../base/errors.ts";
import { isObject, type JsonObject, plainNumber } from "../../base/json.ts";
import type { StreamOptions, StreamTransform } from "../../inference/upstream_response.ts";
import { noticeFor } from "../../inference/notice.ts";
import type { ChoiceMender, ChoiceShape } from "./choice_shape.ts";
import { hasHead, normalizeHead } from "./head.ts";
import { sseFrame } from "./sse.ts";
import type { LargeEventPart } from "../../upstreams/event_reader.ts";
import { OpenAiScanner } from "./response_scanner.ts";
import { servedBy, usageIn, withoutUsage } from "./usage.ts";
import { isErrorChunk, parsedChunk, streamError } from "./stream_error.ts";

/**
 * Turns an upstream's events into frames for the caller, and meters them. A chunk that needs no
 * change is passed on as its own text; a missing id or time is added. Usage is held back until the
 * end.
 */
export class ChoiceStreamTransform implements StreamTransform {
  /** The upstream has sent `[DONE]`. */
  done = false;
  /** An error that the upstream sent within the stream, ready for the caller. */
  error: ApiError | null = null;
  readonly #options: StreamOptions;
  readonly #shape: ChoiceShape;
  readonly #mender: ChoiceMender;
  #head: JsonObject;
  /** Other fields of the upstream's usage chunk, such as timings. */
  #beside: JsonObject = {};
  #seen = new Set<number>();
  #finished = new Set<number>();
  /** The last chunks of choices that end with a notice, held until all text has arrived. */
  #endings = new Map<number, JsonObject>();
  /** Reads the event that passes in parts. */
  #large: OpenAiScanner | null = null;

  constructor(options: StreamOptions, shape: ChoiceShape) {
    this.#options = options;
    this.#shape = shape;
    this.#mender = shape.createMender(options);
    this.#head = { ...options.head, object: shape.chunkObject };
  }

  /** The frames for these events: often one each, sometimes none. */
  takeAll(events: EventSourceMessage[]): string {
    let frames = "";
    for (const event of events) frames += this.take(event);
    return frames;
  }

  /** The frames for one event. */
  take({ data, event }: EventSourceMessage): string {
    if (this.error) return "";
    if (this.done) {
      // Some servers report usage after the end.
      const late = parsedChunk(data);
      if (isObject(late)) this.#options.meter.addUsage(usageIn(late));
      return "";
    }
    if (data === "[DONE]") {
      this.done = true;
      return "";
    }
    const chunk = parsedChunk(data);
    if (isErrorChunk(event, chunk)) {
      this.error = streamError(data, this.#options.apiKey);
      return "";
    }
    // Clients fail on data that is not JSON, and no upstream means anything by it.
    if (!isObject(chunk)) return "";
    return this.#takeChunk(chunk, data);
  }

  /** A part of a frame: an event that is too large is passed on as it is, but for its end. */
  takeLarge({ largeText, isLast }: LargeEventPart): string {
    if (this.done || this.error) return "";
    const { meter } = this.#options;
    meter.noteUnreadOutput();
    this.#large ??= new OpenAiScanner();
    this.#large.push(largeText);
    if (!isLast) return largeText;
    const { usages, served, hasImage } = this.#large;
    this.#noteLargeChoice(this.#large);
    this.#large = null;
    meter.addServed(served);
    if (hasImage) meter.producedImage = true;
    for (const usage of usages) meter.addUsage(usage);
    return `${largeText}\n\n`;
  }

  /**
   * Notes the state of the choice that a large event is about, which is known where there is only
   * one.
   */
  #noteLargeChoice({ finishReason, callsTool }: OpenAiScanner): void {
    if (this.#options.request.choices > 1) return;
    if (callsTool) this.#mender.noteToolCall(0);
    if (finishReason === null) return;
    this.#seen.add(0);
    this.#finished.add(0);
  }

  /** Whether the stream has ended without a choice and without usage. */
  get isEmpty(): boolean {
    const { reported, doubtful, hasUnreadOutput } = this.#options.meter;
    return this.done && this.#seen.size === 0 && !reported && !doubtful && !hasUnreadOutput;
  }

  /** Whether every choice has a finish reason. */
  get complete(): boolean {
    return this.#seen.size > 0 && [...this.#seen].every((index) => this.#finished.has(index));
  }

  /**
   * The frames that end every choice, with the notice for the balance that is left. Choices without
   * an end get one, so that clients do not take the stream for broken.
   */
  finish(reason: "stop" | "length", balance: string): string {
    if (this.#seen.size === 0) this.#seen.add(0);
    let frames = "";
    for (const index of this.#seen) {
      if (this.#finished.has(index) && !this.#endings.has(index)) continue;
      this.#finished.add(index);
      const last = this.#shape.createDelta(index, null, reason);
      const end = this.#endings.get(index) ?? this.#mender.mend(last, index) ?? last;
      this.#endings.delete(index);
      const content = noticeFor(end.finish_reason, this.#options.notice)?.(balance);
      if (content) frames += this.#frame(this.#shape.createDelta(index, content, null));
      frames += this.#frame(end);
    }
    return frames;
  }

  /** The usage chunk that `stream_options.include_usage` asks for. */
  usageFrame(usage: JsonObject): string {
    return sseFrame(JSON.stringify({ ...this.#beside, ...this.#head, choices: [], usage }));
  }

  #takeChunk(chunk: JsonObject, data: string): string {
    const { meter, request: { wantsUsage } } = this.#options;
    const sent = Array.isArray(chunk.choices) ? chunk.choices : [];
    const choices = sent.map((choice, position) => this.#mender.mend(choice, position))
      .map((choice) => choice && this.#meterChoice(choice))
      .filter((choice) => choice !== null);
    const isNewHead = !hasHead(chunk, this.#head);
    if (isNewHead) this.#head = normalizeHead(chunk, this.#head);
    if (isNewHead || "service_tier" in chunk) meter.addServed(servedBy(chunk));
    const usage = usageIn(chunk);
    if (usage) meter.addUsage(usage);
    // A chunk with usage alone is sent at the end; one with invalid choices alone is dropped.
    if (choices.length === 0 && (usage || sent.length > 0)) {
      if (usage) this.#beside = withoutUsage(chunk);
      return "";
    }
    const isElsewhere = usage !== undefined && usage !== chunk.usage;
    const lacking = isElsewhere || sent !== chunk.choices || choices.length < sent.length ||
      choices.some((choice, at) => choice !== sent[at]) || !hasHead(chunk, this.#head);
    const asPromised = wantsUsage ? chunk.usage === null : !("usage" in chunk);
    if (asPromised && !lacking) return sseFrame(data);
    const whole = {
      ...withoutUsage(chunk),
      ...this.#head,
      choices,
      ...(wantsUsage ? { usage: null } : {}),
    };
    return sseFrame(JSON.stringify(whole));
  }

  /** Meters a choice. Where a notice follows it, its end is kept for `finish`. */
  #meterChoice(sent: JsonObject): JsonObject | null {
    const choice = "usage" in sent ? withoutUsage(sent) : sent;
    const { finish_reason: reason } = choice;
    const index = plainNumber(choice.index);
    this.#seen.add(index);
    for (const text of this.#shape.deltaTextsOf(choice)) this.#options.meter.addText(text);
    for (const url of this.#shape.imagesOf(choice)) this.#options.meter.addImage(url);
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
