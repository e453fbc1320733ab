import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { BridgeOptions, EventTranslator } from "../../../inference/format.ts";
import { joinReports } from "../../../pricing/join_reports.ts";
import { readUsage } from "../../../pricing/usage.ts";
import { invalidUpstreamResponse } from "../../../upstreams/errors.ts";
import { hasOutput } from "../../openai/progress.ts";
import { errorOfEvent, parsedChunk } from "../../openai/stream_error.ts";
import type { ChoiceMender } from "../../openai/choice_shape.ts";
import { servedBy, usageIn } from "../../openai/usage.ts";
import { bridgedMender } from "../chat_reading.ts";
import { HeldText } from "../held_text.ts";
import { sentEvent } from "../sent_event.ts";
import { MessageBlocks } from "./blocks.ts";
import { billedUsageOf, toMessagesUsage } from "./usage.ts";
import {
  readWritten,
  thinkingBlock,
  type ThinkingForm,
  thinkingForm,
  toMessageStop,
} from "./written.ts";

/**
 * Turns the chunks of a chat completion into the events of Anthropic's stream. The end of the
 * message waits for `[DONE]`, or for the end of the stream, since usage comes after the last text.
 */
export class MessageEventTranslator implements EventTranslator {
  readonly #options: BridgeOptions;
  readonly #blocks: MessageBlocks;
  readonly #mender: ChoiceMender;
  readonly #thinkingForm: ThinkingForm;
  /** Thinking that is sent only beside a call. */
  #thought = { field: "", text: "" };
  readonly #held = new HeldText();
  #out: EventSourceMessage[] = [];
  #isStarted = false;
  #isEnded = false;
  /** A choice has said something, or why it ended. */
  #hasOutput = false;
  #refuses = false;
  /** All that the upstream has reported. */
  #reported: JsonObject | null = null;
  #tier: string | null = null;
  /** The choice that has said why it ended. */
  #finish: JsonObject | null = null;

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#thinkingForm = thinkingForm(options.request);
    this.#mender = bridgedMender(options);
    this.#blocks = new MessageBlocks((type, fields) => this.#send(type, fields));
  }

  take(event: EventSourceMessage): EventSourceMessage[] {
    if (event.data === "[DONE]") {
      if (!this.#hasOutput) throw invalidUpstreamResponse("a stream that ends without output");
      if (!this.#finish) this.#takeChoice({ delta: {}, finish_reason: "stop" }, 0);
      this.#end();
      return this.#sent();
    }
    const chunk = parsedChunk(event.data);
    const error = errorOfEvent(event, this.#options.apiKey);
    if (error) throw error;
    if (isObject(chunk)) this.#takeChunk(chunk);
    return this.#sent();
  }

  end(): EventSourceMessage[] {
    if (this.#finish) this.#end();
    return this.#sent();
  }

  #takeChunk(chunk: JsonObject): void {
    this.#takeUsage(chunk);
    if (this.#isEnded || !Array.isArray(chunk.choices)) return;
    for (const [position, sent] of chunk.choices.entries()) {
      this.#takeChoice(sent, position, chunk.model);
    }
  }

  #takeChoice(sent: Json, position: number, model?: Json): void {
    const choice = this.#mender.mend(sent, position);
    if (choice?.index !== 0) return;
    this.#hasOutput ||= hasOutput(choice);
    this.#start(model);
    if (isObject(choice.delta)) this.#takeDelta(choice.delta);
    if (choice.finish_reason) this.#finish = choice;
  }

  #takeUsage(chunk: JsonObject): void {
    const raw = usageIn(chunk);
    this.#tier = servedBy(chunk).tier ?? this.#tier;
    if (!raw || !readUsage(raw)) return;
    this.#reported = this.#reported ? joinReports(this.#reported, raw) : raw;
    // Some servers report usage after the end. Readers take the highest of each of its classes.
    if (this.#isEnded) this.#sendMessageDelta();
  }

  #takeDelta(delta: JsonObject): void {
    const { thinking, thinkingField, text, refuses } = readWritten(delta);
    this.#refuses ||= refuses;
    if (thinking !== "") this.#takeThinking(thinking, thinkingField);
    if (text !== "") this.#blocks.addText(text);
    const { tool_calls: calls } = delta;
    for (const call of Array.isArray(calls) ? calls : []) {
      if (!isObject(call)) continue;
      this.#sendThought();
      this.#blocks.addCall(call);
    }
  }

  #takeThinking(text: string, field: string): void {
    if (this.#thinkingForm === "shown") return this.#blocks.addThinking(text, field);
    // Something has to arrive, so that clients do not take a long silence for the end.
    this.#send("ping", {});
    if (this.#thinkingForm === "none" || field === "") return;
    this.#held.add(text.length);
    this.#thought = { field, text: this.#thought.text + text };
  }

  /** Sends the thinking that has waited for a call. */
  #sendThought(): void {
    if (this.#thought.text === "") return;
    const { thinking, signature } = thinkingBlock(this.#thinkingForm, this.#thought);
    this.#blocks.addThinking(thinking, signature);
    this.#thought = { field: "", text: "" };
  }

  #start(model?: Json): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const { head } = this.#options;
    this.#send("message_start", {
      message: {
        id: head.id,
        type: "message",
        role: "assistant",
        model: typeof model === "string" && model !== "" ? model : head.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 0, output_tokens: 0 },
      },
    });
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#start();
    if (this.#blocks.hasCalls) this.#sendThought();
    this.#blocks.end();
    this.#sendMessageDelta();
    this.#send("message_stop", {});
  }

  #sendMessageDelta(): void {
    const delta = toMessageStop(this.#finish ?? {}, {
      calls: this.#blocks.hasCalls,
      refuses: this.#refuses,
      request: this.#options.request,
    });
    const usage = this.#reported && toMessagesUsage(this.#reported, this.#tier);
    this.#send("message_delta", {
      delta: { ...delta },
      usage: billedUsageOf(usage, delta) ?? { output_tokens: 0 },
    });
  }

  #send(type: string, fields: JsonObject): void {
    this.#out.push(sentEvent({ type, ...fields }, type));
  }

  #sent(): EventSourceMessage[] {
    const sent = this.#out;
    this.#out = [];
    return sent;
  }
}
