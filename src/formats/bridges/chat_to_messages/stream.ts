import type { EventSourceMessage } from "eventsource-parser";
import {
  isObject,
  type Json,
  type JsonObject,
  plainNumber,
  plainText,
} from "../../../base/json.ts";
import type { BridgeOptions, EventTranslator } from "../../../inference/format.ts";
import { joinReports } from "../../../pricing/join_reports.ts";
import { billedUnlessRefused } from "../../messages/usage.ts";
import { isErrorChunk, parsedChunk } from "../../openai/stream_error.ts";
import { customInput } from "../custom_tool.ts";
import { HeldText } from "../held_text.ts";
import { sentEvent } from "../sent_event.ts";
import { isSignedThinking, toFinishReason } from "./response.ts";
import { type CallForm, callFormOf } from "./tools.ts";
import { toChatUsage } from "./usage.ts";

/** Memory that a block takes besides its text, in characters. */
const blockChars = 128;

/** A block that has started. */
interface Block {
  start: JsonObject;
  /** The place of the block's tool call among the calls. */
  call: number;
  /** Whether the block's input has come, at least in part. */
  hasInput: boolean;
  /** The input of a custom tool, which is sent at its end; null for other blocks. */
  customInput: string | null;
  thinking: string;
  signature: string;
}

/** Turns the events of Anthropic's stream into chunks of a chat completion. */
export class ChunkTranslator implements EventTranslator {
  readonly #options: BridgeOptions;
  readonly #form: CallForm;
  readonly #blocks = new Map<number, Block>();
  readonly #held = new HeldText();
  #out: EventSourceMessage[] = [];
  #id: string;
  #model: string;
  #usage: JsonObject = {};
  #calls = 0;
  #isStarted = false;
  /** There is a block that is not an empty text. */
  #hasContent = false;

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#form = callFormOf(options.request.body);
    this.#id = options.head.id;
    this.#model = options.head.model;
  }

  take(event: EventSourceMessage): EventSourceMessage[] {
    const sent = parsedChunk(event.data);
    // The caller's format reads Anthropic's errors like its own.
    if (isErrorChunk(event.event, sent)) return [event];
    if (isObject(sent)) this.#takeEvent(sent);
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** Returns no events: a stream that ends before `message_stop` has broken off. */
  end(): EventSourceMessage[] {
    return [];
  }

  #takeEvent(event: JsonObject): void {
    const index = plainNumber(event.index);
    switch (event.type) {
      case "message_start":
        if (isObject(event.message)) this.#startMessage(event.message);
        break;
      case "content_block_start":
        if (isObject(event.content_block)) this.#startBlock(index, event.content_block);
        break;
      case "content_block_delta":
        if (isObject(event.delta)) this.#takeDelta(index, event.delta);
        break;
      case "content_block_stop":
        this.#stopBlock(index);
        break;
      case "message_delta":
        this.#endMessage(event);
        break;
      case "message_stop":
        this.#out.push({ data: "[DONE]", event: undefined, id: undefined });
    }
  }

  /**
   * Begins the message. The usage in it has the prompt, which is then known for a stream that is
   * cut off later.
   */
  #startMessage({ id, model, usage }: JsonObject): void {
    if (typeof id === "string") this.#id = id;
    if (typeof model === "string") this.#model = model;
    this.#startChoice(isObject(usage) ? this.#addUsage(usage) : undefined);
  }

  #startChoice(usage?: JsonObject): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#send({ role: "assistant", content: "" }, null, usage);
  }

  #startBlock(index: number, start: JsonObject): void {
    const { type, text, thinking, signature, id, name } = start;
    const block: Block = {
      ...{ start, call: 0, hasInput: false, thinking: "", signature: "" },
      customInput: type === "tool_use" && this.#form.isCustom(plainText(name)) ? "" : null,
    };
    this.#held.add(blockChars);
    this.#blocks.set(index, block);
    if (type !== "text") this.#hasContent = true;
    if (type === "text") this.#sendText("content", text);
    if (type === "thinking") {
      this.#addThinking(block, thinking);
      if (typeof signature === "string") block.signature = signature;
    }
    if (type !== "tool_use") return;
    block.call = this.#calls++;
    this.#sendCall(block, {
      id: typeof id === "string" ? id : `call_${block.call}`,
      ...(block.customInput === null
        ? { type: "function", function: { name: plainText(name), arguments: "" } }
        : { type: "custom", custom: { name: plainText(name), input: "" } }),
    });
  }

  #takeDelta(index: number, delta: JsonObject): void {
    const block = this.#blocks.get(index);
    switch (delta.type) {
      case "text_delta":
        return this.#sendText("content", delta.text);
      case "thinking_delta":
        return this.#addThinking(block, delta.thinking);
      case "signature_delta":
        if (block && typeof delta.signature === "string") {
          this.#held.add(delta.signature.length);
          block.signature += delta.signature;
        }
        return;
      case "input_json_delta":
        if (block) this.#sendInput(block, delta.partial_json);
    }
  }

  #addThinking(block: Block | undefined, text: Json | undefined): void {
    if (block && typeof text === "string") {
      this.#held.add(text.length);
      block.thinking += text;
    }
    this.#sendText("reasoning_content", text);
  }

  #stopBlock(index: number): void {
    const block = this.#blocks.get(index);
    if (!block) return;
    this.#blocks.delete(index);
    const { start, hasInput, thinking, signature } = block;
    if (start.type === "tool_use" && !hasInput) {
      // Some servers send the input whole, at the start of its block.
      this.#sendInput(block, JSON.stringify(isObject(start.input) ? start.input : {}));
    }
    if (block.customInput !== null) {
      this.#sendCall(block, { custom: { input: customInput(block.customInput) } });
    }
    const whole = start.type === "thinking" ? { type: "thinking", thinking, signature } : start;
    if (isSignedThinking(whole)) this.#send({ thinking_blocks: [whole] });
  }

  #endMessage({ delta, usage }: JsonObject): void {
    const reason = isObject(delta) ? delta.stop_reason : undefined;
    if (typeof reason === "string") this.#send({}, toFinishReason(reason, this.#form));
    const said = isObject(usage) ? usage : null;
    const billed = billedUnlessRefused(said, { reason, hasContent: this.#hasContent });
    if (billed) this.#sendChunk([], this.#addUsage(billed));
  }

  #addUsage(usage: JsonObject): JsonObject {
    this.#usage = joinReports(this.#usage, usage);
    return toChatUsage(this.#usage);
  }

  #sendInput(block: Block, text: Json | undefined): void {
    if (typeof text !== "string" || text === "") return;
    block.hasInput = true;
    if (block.customInput !== null) {
      this.#held.add(text.length);
      block.customInput += text;
    } else this.#sendCall(block, { function: { arguments: text } });
  }

  #sendCall({ call: index }: Block, call: JsonObject): void {
    if (this.#form.isLegacy) this.#send({ function_call: call.function ?? null });
    else this.#send({ tool_calls: [{ index, ...call }] });
  }

  #sendText(field: string, text: Json | undefined): void {
    if (typeof text !== "string" || text === "") return;
    this.#hasContent = true;
    this.#send({ [field]: text });
  }

  #send(delta: JsonObject, reason: string | null = null, usage?: JsonObject): void {
    this.#startChoice();
    this.#sendChunk([{ index: 0, delta, logprobs: null, finish_reason: reason }], usage);
  }

  #sendChunk(choices: JsonObject[], usage?: JsonObject): void {
    this.#out.push(sentEvent({
      id: this.#id,
      object: "chat.completion.chunk",
      created: this.#options.head.created,
      model: this.#model,
      choices,
      ...(usage ? { usage } : {}),
    }));
  }
}
