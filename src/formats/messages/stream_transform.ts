import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../../base/errors.ts";
import { isObject, type JsonObject, nestsDeeper, ownMember, plainText } from "../../base/json.ts";
import { jsonDepthMax } from "../../base/limits.ts";
import type { StreamOptions, StreamTransform } from "../../inference/upstream_response.ts";
import type { LargeEventPart } from "../../upstreams/event_reader.ts";
import { joinReports } from "../../pricing/join_reports.ts";
import { readTier } from "../../pricing/usage_fields.ts";
import { isErrorChunk, parsedChunk, streamError } from "../openai/stream_error.ts";
import { startFor } from "./assembler.ts";
import { blockTexts, deltaTexts } from "./blocks.ts";
import { noticeAfter, reasonWithNotice } from "./ending.ts";
import { stringsIn } from "./content.ts";
import { eventFrame } from "./errors.ts";
import { identity, isName } from "./response.ts";
import { emptyAtFirst } from "./progress.ts";
import { MessageScanner } from "./scanner.ts";
import { billedUnlessRefused, billedUsage, calledTool, messageServedBy, usageOf } from "./usage.ts";

/**
 * Turns an upstream's events into frames for the caller, and meters them. An event that needs no
 * change is passed on as its own text. `message_delta` is held back until the charge, and where a
 * notice may follow a text, so is the end of its block.
 */
export class MessageStreamTransform implements StreamTransform {
  /** The upstream has sent `message_stop`. */
  done = false;
  /** An error that the upstream sent within the stream, ready for the caller. */
  error: ApiError | null = null;
  readonly #options: StreamOptions;
  readonly #mayEndWithNotice: boolean;
  /** The caller has got the start of a message. */
  #hasBegun = false;
  /** Blocks without an end, by their index. */
  #open = new Map<number, string>();
  #nextIndex = 0;
  /** There is a block that is not an empty text. */
  #hasContent = false;
  #lastType: string | null = null;
  /** The end of a text, and the index of its block. */
  #held: { index: number; frame: string } | null = null;
  /** Everything that `message_delta` has said. */
  #ending: JsonObject = { type: "message_delta" };
  #stopReason: string | null = null;
  /** The stop reason for the caller, once it is decided. */
  #endReason: string | null = null;
  #usage: JsonObject = {};
  #toolCalls: Record<string, number> = {};
  /** Reads the event that passes in parts. */
  #large: MessageScanner | null = null;

  constructor(options: StreamOptions) {
    this.#options = options;
    const { atLength, atEnd } = options.notice;
    this.#mayEndWithNotice = atLength !== null || atEnd !== null;
  }

  takeAll(events: EventSourceMessage[]): string {
    let frames = "";
    for (const event of events) frames += this.take(event);
    return frames;
  }

  /** The frames for one event. */
  take({ data, event }: EventSourceMessage): string {
    if (this.error) return "";
    const chunk = parsedChunk(data);
    if (!this.done && isErrorChunk(event, chunk)) {
      this.error = streamError(data, this.#options.apiKey);
      return "";
    }
    // What nests too deep could not be written again.
    if (!isObject(chunk) || nestsDeeper(data, jsonDepthMax)) return "";
    if (this.done) {
      this.#addUsage(usageOf(chunk));
      return "";
    }
    const type = isName(chunk.type) ? chunk.type : event ?? "";
    if (chunk.type === type) return this.#takeChunk(chunk, { data, type });
    const named = { ...chunk, type };
    return this.#takeChunk(named, { data: JSON.stringify(named), type });
  }

  /** A part of a frame: an event that is too large is passed on as it is, but for its end. */
  takeLarge({ largeText, isLast }: LargeEventPart): string {
    if (this.done || this.error) return "";
    const { meter } = this.#options;
    meter.noteUnreadOutput();
    const isFirst = this.#large === null;
    this.#large ??= new MessageScanner();
    this.#large.push(largeText);
    let frame = isFirst ? this.#before() + `event: ${typeOfLarge(largeText)}\n` : "";
    frame += largeText;
    if (!isLast) return frame;
    const { usages, served, stopReason } = this.#large;
    this.#hasContent = true;
    this.#large = null;
    this.#stopReason = stopReason ?? this.#stopReason;
    meter.addServed(served);
    for (const usage of usages) this.#addUsage(usage);
    return `${frame}\n\n`;
  }

  /** Whether the stream has ended without a block and without usage. */
  get isEmpty(): boolean {
    const { reported, doubtful, hasUnreadOutput } = this.#options.meter;
    return this.done && this.#nextIndex === 0 && !reported && !doubtful && !hasUnreadOutput;
  }

  /** Whether the message has a stop reason. */
  get complete(): boolean {
    return this.#stopReason !== null;
  }

  /** The frames that end every block, with the notice for the balance that is left. */
  finish(reason: "stop" | "length", balance: string): string {
    const { notice, request: { structured } } = this.#options;
    const ended = this.#lastType === "tool_use" ? "tool_use" : "end_turn";
    const stopped = this.#stopReason ?? (reason === "length" ? "max_tokens" : ended);
    const text = noticeAfter(stopped, this.#lastType, notice)?.(balance) ?? "";
    this.#endReason = text ? reasonWithNotice(stopped, { notice, structured }) : stopped;
    return this.#begin() + (text ? this.#noticeFrames(text) : "") + this.#closeBlocks();
  }

  /** `message_delta`: the stop reason, and the usage that was charged. */
  usageFrame(usage: JsonObject): string {
    if (!this.#hasBegun) return "";
    const { delta } = this.#ending;
    return event({
      ...this.#ending,
      delta: {
        stop_sequence: null,
        ...(isObject(delta) ? delta : {}),
        stop_reason: this.#endReason,
      },
      usage,
    });
  }

  #takeChunk(chunk: JsonObject, { data, type }: { data: string; type: string }): string {
    switch (type) {
      case "ping":
        return this.#hasBegun ? eventFrame(type, data) : "";
      case "message_start":
        return this.#startMessage(chunk, data);
      case "content_block_start":
        return this.#startBlock(chunk, data);
      case "content_block_delta":
        return this.#addDelta(chunk, data);
      case "content_block_stop":
        return this.#stopBlock(chunk, data);
      case "message_delta":
        this.#endMessage(chunk);
        return "";
      case "message_stop":
        this.done = true;
        return "";
      default:
        return this.#passUnknown(chunk, { data, type });
    }
  }

  #startMessage({ message }: JsonObject, data: string): string {
    const sent = isObject(message) ? message : {};
    this.#options.meter.addServed(messageServedBy(sent));
    this.#addUsage(usageOf(message));
    for (const block of Array.isArray(sent.content) ? sent.content : []) {
      if (isObject(block)) this.#meter(blockTexts(block));
    }
    if (this.#hasBegun) return "";
    this.#hasBegun = true;
    return isWholeStart(sent) ? eventFrame("message_start", data) : this.#ownStart(sent);
  }

  #startBlock(chunk: JsonObject, data: string): string {
    const { content_block: block } = chunk;
    if (!isObject(block) || !isName(block.type)) return "";
    const before = this.#before();
    const index = isIndex(chunk.index) ? chunk.index : this.#nextIndex;
    this.#open.set(index, block.type);
    this.#lastType = block.type;
    this.#nextIndex = Math.max(this.#nextIndex, index + 1);
    this.#meter(blockTexts(block));
    if (block.type !== "text") this.#hasContent = true;
    if (!emptyAtFirst.has(block.type)) this.#options.meter.producedOutput = true;
    this.#countCall(block);
    return before + eventWithIndex("content_block_start", { chunk, index, data });
  }

  #addDelta(chunk: JsonObject, data: string): string {
    const { delta } = chunk;
    if (!isObject(delta)) return "";
    this.#meter(deltaTexts(delta));
    const index = isIndex(chunk.index) ? chunk.index : Math.max(0, this.#nextIndex - 1);
    let before = this.#before();
    const start = this.#open.has(index) ? null : startFor(delta);
    if (start) {
      const opening = { type: "content_block_start", index, content_block: start };
      before += this.#startBlock(opening, JSON.stringify(opening));
    }
    return before + eventWithIndex("content_block_delta", { chunk, index, data });
  }

  #stopBlock(chunk: JsonObject, data: string): string {
    const index = isIndex(chunk.index) ? chunk.index : Math.max(0, this.#nextIndex - 1);
    const type = this.#open.get(index);
    // The start of a block may have been an event that was too large to be read.
    if (type === undefined && !this.#options.meter.hasUnreadOutput) return "";
    this.#open.delete(index);
    const before = this.#before();
    const frame = eventWithIndex("content_block_stop", { chunk, index, data });
    if (type !== "text" || !this.#mayEndWithNotice) return before + frame;
    this.#held = { index, frame };
    return before;
  }

  #endMessage({ type: _, usage: _usage, delta, ...beside }: JsonObject): void {
    if (isObject(_usage)) this.#addUsage(_usage);
    const said = isObject(this.#ending.delta) ? { ...this.#ending.delta } : {};
    for (const [name, value] of Object.entries(isObject(delta) ? delta : {})) {
      if (value !== null || said[name] === undefined) said[name] = value;
    }
    this.#ending = { ...this.#ending, ...beside, delta: said };
    if (isName(said.stop_reason)) this.#stopReason = said.stop_reason;
    const billed = billedUnlessRefused(this.#usage, {
      reason: this.#stopReason,
      hasContent: this.#hasContent,
    });
    if (billed !== this.#usage) this.#addUsage(billed);
  }

  /** An event of a type that is not known yet: whatever text it has is metered. */
  #passUnknown(chunk: JsonObject, { data, type }: { data: string; type: string }): string {
    if (!eventName.test(type)) return "";
    this.#addUsage(usageOf(chunk));
    const { type: _, ...said } = chunk;
    this.#meter(stringsIn(said));
    return this.#before() + eventFrame(type, data);
  }

  #meter(texts: Iterable<string>): void {
    for (const text of texts) {
      if (text !== "") this.#hasContent = true;
      this.#options.meter.addText(text);
    }
  }

  /** Usage is cumulative: an event may leave out what another has said. */
  #addUsage(usage: JsonObject | null): void {
    if (!usage) return;
    this.#usage = joinReports(this.#usage, usage);
    const { meter } = this.#options;
    meter.addUsage(billedUsage(this.#usage));
    meter.addServed({ model: null, tier: readTier(this.#usage) });
  }

  #countCall(block: JsonObject): void {
    const name = calledTool(block);
    if (name === null) return;
    const calls = this.#toolCalls[name] = (ownMember(this.#toolCalls, name) ?? 0) + 1;
    this.#options.meter.addToolCalls({ [name]: calls });
  }

  /** Returns the frames that have to be sent before anything else of the message. */
  #before(): string {
    const begun = this.#begin();
    const frame = this.#held?.frame ?? "";
    this.#held = null;
    return begun + frame;
  }

  #begin(): string {
    if (this.#hasBegun) return "";
    this.#hasBegun = true;
    return this.#ownStart({});
  }

  #ownStart(sent: JsonObject): string {
    const usage = joinReports({ input_tokens: 0, output_tokens: 0 }, usageOf(sent) ?? {});
    const content = Array.isArray(sent.content) ? sent.content : [];
    const message = {
      stop_reason: null,
      stop_sequence: null,
      ...sent,
      ...identity(sent, this.#options.head),
      content,
      usage,
    };
    return event({ type: "message_start", message });
  }

  /** The notice at the end of the last text, or as a text of its own. */
  #noticeFrames(text: string): string {
    const last = this.#nextIndex - 1;
    const delta = { type: "text_delta", text };
    const isOpen = this.#lastType === "text" && this.#open.has(last);
    const index = this.#held?.index ?? (isOpen ? last : this.#nextIndex);
    let before = "";
    if (index === this.#nextIndex) {
      before = this.#closeBlocks();
      const opening = { type: "content_block_start", index, content_block: textStart };
      before += this.#startBlock(opening, JSON.stringify(opening));
    }
    return before + event({ type: "content_block_delta", index, delta });
  }

  #closeBlocks(): string {
    let frames = this.#held?.frame ?? "";
    this.#held = null;
    for (const index of this.#open.keys()) frames += event({ type: "content_block_stop", index });
    this.#open.clear();
    return frames;
  }
}

const textStart = { type: "text", text: "" };

/** Names of events, of which a frame can be made. */
const eventName = /^\w{1,64}$/;

function event(value: JsonObject): string {
  return eventFrame(plainText(value.type), JSON.stringify(value));
}

/** An event of a block as it was sent, unless it lacks the block's index. */
function eventWithIndex(
  type: string,
  { chunk, index, data }: { chunk: JsonObject; index: number; data: string },
): string {
  return eventFrame(type, chunk.index === index ? data : JSON.stringify({ ...chunk, index }));
}

/** Whether a message that begins a stream has what clients read of it. */
function isWholeStart({ id, type, role, model, content, usage }: JsonObject): boolean {
  return isName(id) && type === "message" && role === "assistant" && isName(model) &&
    Array.isArray(content) && isObject(usage) && typeof usage.input_tokens === "number" &&
    typeof usage.output_tokens === "number";
}

function isIndex(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** The type of an event that is too large, which stands at its beginning. */
function typeOfLarge(text: string): string {
  return /"type"\s*:\s*"(\w{1,64})"/.exec(text.slice(0, 256))?.[1] ?? "content_block_delta";
}
