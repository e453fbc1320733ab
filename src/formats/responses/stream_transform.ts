import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../../base/errors.ts";
import { isObject, type JsonObject, nestsDeeper } from "../../base/json.ts";
import { jsonDepthMax } from "../../base/limits.ts";
import type {
  KeptIds,
  ResponseHead,
  StreamOptions,
  StreamTransform,
} from "../../inference/upstream_response.ts";
import type { LargeEventPart } from "../../upstreams/event_reader.ts";
import { parsedChunk, streamError } from "../openai/stream_error.ts";
import { servedBy } from "../openai/usage.ts";
import {
  closingOf,
  completedMembers,
  ownMessage,
  type ResponseClosing,
  withClosing,
} from "./closing.ts";
import { eventType, failureOf, isErrorEvent } from "./failure.ts";
import { imagesIn } from "./output_items.ts";
import { OutputState } from "./output_state.ts";
import { ownIds } from "./own_ids.ts";
import {
  cutMembers,
  headOf,
  isCutByBound,
  isFailed,
  isWholeStart,
  normalizeObject,
  normalizeOutput,
} from "./response_object.ts";
import { finalTypes, idsIn, keptIds } from "./response.ts";
import { ResponsesScanner } from "./response_scan.ts";
import { type HeldEvent, OutputEnd } from "./stream_end.ts";
import { finalType, openingEvents } from "./stream_events.ts";
import { errorEvent, FrameWriter } from "./stream_frames.ts";
import { EventRepair, responseIn } from "./stream_repair.ts";
import { usageWithTools } from "./tool_calls.ts";

/** Events that end a text, a part or an item: a notice has to stand before them. */
const endings = new Set([
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
]);

/** Events that have the response as it begins. */
const startTypes = new Set(["response.created", "response.in_progress", "response.queued"]);

/** The findings of `finish`, for the last event. */
interface Ending {
  closing: ResponseClosing;
  isCut: boolean;
  output: readonly JsonObject[];
}

/**
 * Turns an upstream's events into frames for the caller, and meters them. An event that needs no
 * change is passed on as its own text. The last event is held back until the response is charged.
 */
export class ResponseStreamTransform implements StreamTransform {
  /** The upstream has sent its last event. */
  done = false;
  error: ApiError | null = null;
  readonly #options: StreamOptions;
  readonly #writer = new FrameWriter();
  readonly #state: OutputState;
  readonly #repair: EventRepair;
  readonly #mayNotify: boolean;
  #head: ResponseHead;
  /** The response as it began; null before its first event. */
  #start: JsonObject | null = null;
  /** The id and `store` of the response, as the upstream sent them. */
  #sent: JsonObject = {};
  /** The last event. */
  #final: JsonObject | null = null;
  /** The ends of the last text, which a notice may go before. */
  #held: HeldEvent[] = [];
  #ending: Ending | null = null;
  #usage: JsonObject | null = null;
  /** The last event has been sent. */
  #isEnded = false;
  /** Reads the event that passes in parts. */
  #large: ResponsesScanner | null = null;

  constructor(options: StreamOptions) {
    const { meter, head, notice } = options;
    this.#options = options;
    this.#head = head;
    this.#mayNotify = notice.atLength !== null || notice.atEnd !== null;
    this.#state = new OutputState((text) => meter.addText(text));
    this.#repair = new EventRepair(this.#state, head);
  }

  get kept(): KeptIds | null {
    const items = this.#state.sentIds;
    const output = () => this.#state.output();
    return keptIds(this.#options.request, this.#sent, { items, output });
  }

  /** Whether the stream has ended without an item and without usage. */
  get isEmpty(): boolean {
    const { reported, doubtful, hasUnreadOutput } = this.#options.meter;
    return this.done && this.#state.isEmpty && !reported && !doubtful && !hasUnreadOutput;
  }

  get complete(): boolean {
    return this.error === null && (this.#isEnded || this.#state.isComplete);
  }

  takeAll(events: EventSourceMessage[]): string {
    let frames = "";
    for (const event of events) frames += this.#take(event);
    return frames;
  }

  #take(message: EventSourceMessage): string {
    if (this.error) return "";
    const { data } = message;
    if (data === "[DONE]") {
      this.done = true;
      return "";
    }
    const event = parsedChunk(data);
    if (this.done) {
      if (isObject(event)) this.#options.meter.addUsage(usageWithTools(responseIn(event), {}));
      return "";
    }
    if (isErrorEvent(message, event)) {
      this.error = streamError(data, this.#options.apiKey);
      return "";
    }
    // Clients fail on data that is not JSON, and no upstream means anything by it. What nests too
    // deep could not be written again.
    if (!isObject(event) || nestsDeeper(data, jsonDepthMax)) return "";
    const type = eventType(event, message);
    if (finalTypes.has(type)) return this.#takeFinal(type, event);
    return this.#pass(type, event, data);
  }

  #pass(type: string, sent: JsonObject, data: string): string {
    const isStart = isObject(sent.response) || startTypes.has(type);
    const { before, event } = isStart
      ? { before: [], event: this.#withStart(sent, responseIn(sent)) }
      : this.#repair.repair(type, sent);
    if (event === null || (type === "response.created" && this.#start)) {
      // What its caller does not get is metered all the same.
      this.#state.take(type, sent);
      return "";
    }
    const index = this.#state.indexOf(event);
    const [first] = this.#held;
    const isAfterText = first && (first.index !== index || !endings.has(type));
    let frames = (isAfterText ? this.#release() : "") + this.#begin(type, event);
    for (const missing of before) frames += this.#writer.add(missing);
    this.#takeOutput(type, sent, event);
    const text = event === sent && sent.type === type ? data : null;
    const shown = text === null ? { ...event, type } : event;
    if (!this.#endsText(type, event)) return frames + this.#writer.passOn(shown, text);
    this.#held.push({ type, index, event: shown, text });
    return frames;
  }

  /** Meters an event, and keeps what is needed to end the stream. */
  #takeOutput(type: string, { item: sentItem }: JsonObject, event: JsonObject): void {
    const { meter } = this.#options;
    if (isObject(sentItem) && typeof sentItem.id === "string") {
      this.#state.sentIds.add(sentItem.id);
    }
    this.#state.take(type, event);
    if (this.#state.hasSound) meter.noteUnreadOutput();
    if (type !== "response.output_item.done" || !isObject(event.item)) return;
    for (const url of imagesIn(event.item)) meter.addImage(url);
    // Calls of tools are due also where the stream breaks off later.
    const { calls } = this.#state.calls;
    if (Object.keys(calls).length > 0) meter.addUsage({ tool_usage: { ...calls } });
  }

  /** Whether an event ends a text that a notice could follow. */
  #endsText(type: string, { part, item }: JsonObject): boolean {
    if (!this.#mayNotify || !endings.has(type)) return false;
    if (type === "response.content_part.done") return isObject(part) && part.type === "output_text";
    return type !== "response.output_item.done" || (isObject(item) && item.type === "message");
  }

  #release(): string {
    let frames = "";
    for (const { event, text } of this.#held) frames += this.#writer.passOn(event, text);
    this.#held = [];
    return frames;
  }

  /** An event with the response as it begins. */
  #withStart(event: JsonObject, sent: JsonObject): JsonObject {
    const { meter } = this.#options;
    meter.addServed({ model: servedBy(sent).model, tier: null });
    meter.addUsage(usageWithTools(sent, {}));
    this.#noteSent(sent);
    if (isWholeStart(sent) && sent.id === this.#head.id) return event;
    // Items have events of their own, which are metered.
    const response = this.#whole(sent, []);
    return { ...event, response: { ...response, status: "in_progress", usage: null } };
  }

  #noteSent(response: JsonObject): void {
    const { id, store } = response;
    if (id !== undefined) this.#sent.id ??= id;
    if (store !== undefined) this.#sent.store = store;
    // Clients fail where the id of a response changes.
    const head = headOf(response, this.#head);
    this.#head = this.#start ? { ...head, id: this.#head.id } : head;
  }

  /** The event that begins the response, where the first one is another. */
  #begin(type: string, event: JsonObject): string {
    if (this.#start) return "";
    const { response } = event;
    const start = isObject(response) ? response : this.#whole({}, []);
    this.#start = start;
    if (type === "response.created") return "";
    const [created] = openingEvents(start);
    return created ? this.#writer.add(created) : "";
  }

  #takeFinal(type: string, event: JsonObject): string {
    const { meter, apiKey } = this.#options;
    const response = responseIn(event);
    meter.addServed(servedBy(response));
    this.#noteSent(response);
    const frames = this.#begin(type, {});
    const output = normalizeOutput(response.output, this.#head);
    for (const url of output.flatMap(imagesIn)) meter.addImage(url);
    const failed = isFailed(response) || type === "response.failed";
    this.#final = { ...event, type: failed ? "response.failed" : type };
    if (failed) {
      meter.addUsage(usageWithTools(response, this.#state.calls.calls));
      this.error = failureOf(response, apiKey);
      return frames;
    }
    this.#state.takeOutput(output);
    for (const id of idsIn(response.output)) this.#state.sentIds.add(id);
    meter.addUsage(usageWithTools(response, this.#state.calls.calls));
    this.done = true;
    return frames;
  }

  takeLarge({ largeText, isLast }: LargeEventPart): string {
    if (this.done || this.error) return "";
    const { meter } = this.#options;
    meter.noteUnreadOutput();
    let frames = "";
    if (this.#large === null) {
      frames = this.#release();
      this.#large = new ResponsesScanner();
    }
    this.#large.push(largeText);
    if (!isLast) return frames + largeText;
    const { usages, served, type, item, hasImage } = this.#large;
    this.#large = null;
    if (hasImage) meter.producedImage = true;
    this.#start ??= {};
    this.#writer.skip();
    meter.addServed(served);
    for (const usage of usages) meter.addUsage(usage);
    if (type === "response.output_item.done" && this.#state.calls.add(item)) {
      meter.addUsage({ tool_usage: { ...this.#state.calls.calls } });
    }
    // It has passed with its own usage: there is nothing left to hold back.
    if (finalTypes.has(type)) this.done = this.#isEnded = true;
    return `${frames}${largeText}\n\n`;
  }

  finish(reason: "stop" | "length", balance: string): string {
    if (this.#isEnded) return "";
    const { request, notice, head } = this.#options;
    const final = this.#final && responseIn(this.#final);
    const isCut = final ? isCutByBound(final) : reason === "length";
    const begin = this.#begin("", {});
    const closing = closingOf({ output: this.#state.output(), isCut }, {
      notice,
      request,
      balance,
    });
    const own = (text: string) => ownMessage(ownIds(head, request).message, text);
    const sent = normalizeOutput(final?.output, this.#head);
    const isKnown = sent.length === 0 || sent.length === this.#state.items().length;
    const end = new OutputEnd(this.#state, this.#writer, this.#held);
    this.#held = [];
    const frames = begin + end.write(closing, { isCut, own });
    const output = isKnown ? this.#state.output() : withClosing(sent, closing, own);
    this.#ending = { closing, isCut, output };
    return frames;
  }

  /** The last event. */
  usageFrame(usage: JsonObject): string {
    this.#usage = usage;
    const ending = this.#ending;
    if (this.#isEnded || !ending) return "";
    this.#isEnded = true;
    const { closing: { isCompleted }, isCut, output } = ending;
    const final = this.#final;
    const ended = isCompleted || (!final && !isCut) ? completedMembers : final ? {} : cutMembers;
    const response = this.#whole(
      { ...this.#start, ...(final && responseIn(final)), ...ended },
      output,
    );
    const charged = { ...response, usage };
    if (!final) return this.#writer.add({ type: finalType(charged), response: charged });
    const type = isCompleted ? "response.completed" : final.type ?? "";
    return this.#writer.passOn({ ...final, type, response: charged }, null);
  }

  /** An error, and the end of a response that has failed: some clients read only the one. */
  errorFrame(error: unknown): string {
    if (this.#isEnded) return "";
    this.#isEnded = true;
    const event = errorEvent(error);
    const frames = this.#release() + this.#writer.add(event);
    if (this.#final?.type !== "response.failed") return frames;
    const { code = null, message = null } = event;
    const failed = {
      ...this.#whole(responseIn(this.#final), []),
      status: "failed",
      error: { code, message },
      usage: this.#usage,
    };
    return frames + this.#writer.passOn({ ...this.#final, response: failed }, null);
  }

  #whole(sent: JsonObject, output: readonly JsonObject[]): JsonObject {
    const { request } = this.#options;
    const head = this.#head;
    return normalizeObject({ ...sent, id: head.id }, { request, head, output: [...output] });
  }
}
