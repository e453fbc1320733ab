import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { CompleteResponse, EventAssembler } from "../../inference/upstream_response.ts";
import { upstreamDisconnected } from "../../upstreams/errors.ts";
import { joinReports } from "../../pricing/join_reports.ts";
import { errorOfEvent, parsedChunk } from "../openai/stream_error.ts";
import { blockTexts, deltaTexts } from "./blocks.ts";
import { isName, messageFrom, type ReadingOptions } from "./response.ts";
import { billedUsage, usageOf, withToolCalls } from "./usage.ts";

/** Reads the events of a stream as a whole message. */
export class MessageAssembler implements EventAssembler {
  readonly #options: ReadingOptions;
  #message: JsonObject = {};
  #blocks = new Map<number, JsonObject>();
  /** The parts of the inputs of tools, which are JSON only together. */
  #inputs = new Map<number, string[]>();
  #texts: string[] = [];
  #usage: JsonObject | null = null;
  #isDone = false;

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  /** The usage of all events together. */
  get usages(): JsonObject[] {
    const blocks = [...this.#blocks.values()];
    return this.#usage ? [billedUsage(withToolCalls(this.#usage, blocks))] : [];
  }

  add(event: EventSourceMessage, { usageOnly }: { usageOnly: boolean }): void {
    const error = errorOfEvent(event, this.#options.apiKey);
    if (error) throw error;
    const chunk = parsedChunk(event.data);
    if (!isObject(chunk)) return;
    const usage = usageOf(chunk) ?? usageOf(chunk.message);
    if (usage) this.#usage = joinReports(this.#usage ?? {}, usage);
    if (usageOnly) return;
    switch (typeof chunk.type === "string" ? chunk.type : event.event) {
      case "message_start":
        if (isObject(chunk.message)) this.#message = { ...chunk.message, ...this.#message };
        break;
      case "content_block_start":
        if (isObject(chunk.content_block)) this.#startBlock(chunk, chunk.content_block);
        break;
      case "content_block_delta":
        if (isObject(chunk.delta)) this.#addDelta(chunk, chunk.delta);
        break;
      case "message_delta":
        this.#end(chunk);
        break;
      case "message_stop":
        this.#isDone = true;
        break;
    }
  }

  *texts(): Generator<string> {
    yield* this.#texts;
  }

  complete(): CompleteResponse {
    if (!this.#isDone && !isName(this.#message.stop_reason)) {
      throw upstreamDisconnected("a stream without its end");
    }
    for (const [index, parts] of this.#inputs) {
      const input = parsedChunk(parts.join(""));
      const block = this.#blocks.get(index);
      if (block && isObject(input)) block.input = input;
    }
    const ordered = [...this.#blocks].sort(([one], [other]) => one - other);
    const content = ordered.map(([, block]) => block);
    const usage = this.#usage ? { usage: this.#usage } : {};
    const complete = messageFrom({ ...this.#message, content, ...usage }, this.#options);
    return { ...complete, texts: this.#texts };
  }

  #startBlock({ index }: JsonObject, block: JsonObject): void {
    if (typeof block.type !== "string") return;
    this.#texts.push(...blockTexts(block));
    this.#blocks.set(typeof index === "number" ? index : this.#blocks.size, { ...block });
  }

  /** Continues a block. Its texts are appended to the member of the same name. */
  #addDelta({ index }: JsonObject, delta: JsonObject): void {
    this.#texts.push(...deltaTexts(delta));
    const at = typeof index === "number" ? index : this.#blocks.size - 1;
    const block = this.#blocks.get(at) ?? this.#blockFor(delta, at);
    if (!block) return;
    for (const [name, value] of Object.entries(delta)) {
      if (name === "type") continue;
      if (name === "partial_json") {
        const parts = this.#inputs.get(at) ?? [];
        if (typeof value === "string") parts.push(value);
        this.#inputs.set(at, parts);
      } else if (name === "citation") {
        block.citations = [...(Array.isArray(block.citations) ? block.citations : []), value];
      } else if (typeof value === "string") {
        const before = block[name];
        block[name] = typeof before === "string" ? before + value : value;
      }
    }
  }

  /** The block of a delta that came without the start of one. */
  #blockFor(delta: JsonObject, index: number): JsonObject | null {
    const start = startFor(delta);
    if (start) this.#blocks.set(index, start);
    return start;
  }

  #end({ type: _type, usage: _usage, delta, ...beside }: JsonObject): void {
    Object.assign(this.#message, beside);
    if (!isObject(delta)) return;
    for (const [name, value] of Object.entries(delta)) {
      if (value !== null) this.#message[name] = value;
    }
  }
}

/** The start of the block that a delta of text or thinking belongs to; null for other deltas. */
export function startFor({ type }: JsonObject): JsonObject | null {
  if (type === "text_delta") return { type: "text", text: "" };
  return type === "thinking_delta" ? { type: "thinking", thinking: "", signature: "" } : null;
}
