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
import { errorIn, redactKey } from "../../../upstreams/error_body.ts";
import { invalidUpstreamResponse } from "../../../upstreams/errors.ts";
import type { ChoiceMender } from "../../openai/choice_shape.ts";
import { hasOutput } from "../../openai/progress.ts";
import { isErrorChunk, parsedChunk } from "../../openai/stream_error.ts";
import { servedBy, usageIn } from "../../openai/usage.ts";
import { bridgedMender } from "../chat_reading.ts";
import { writeMessage } from "./chat_message.ts";
import { finishReasonOf, ResponseWriter } from "./response_writer.ts";
import { usageFromChat } from "./usage.ts";

/** Turns the chunks of a chat into the events of a response. */
export class ChatStreamTranslator implements EventTranslator {
  readonly #options: BridgeOptions;
  readonly #writer: ResponseWriter;
  readonly #mender: ChoiceMender;
  #events: EventSourceMessage[] = [];
  #sequence = 0;
  /** The index of the one choice; null before it has arrived. */
  #index: number | null = null;
  #finishReason: string | null = null;
  #usage: JsonObject | null = null;
  /** The whole response, after its last event. */
  #response: JsonObject | null = null;
  #hasFailed = false;
  /** A choice has said something, or why it ended. */
  #hasOutput = false;

  constructor(options: BridgeOptions) {
    const { request, head } = options;
    this.#options = options;
    this.#mender = bridgedMender(options);
    const emit = (type: string, fields: JsonObject) => this.#emit(type, fields);
    this.#writer = new ResponseWriter({ request, head, emit });
  }

  take({ data, event }: EventSourceMessage): EventSourceMessage[] {
    if (this.#hasFailed) return [];
    if (data === "[DONE]") {
      if (!this.#hasOutput) throw invalidUpstreamResponse("a stream that ends without output");
      // Some servers end without a finish reason.
      if (this.#index !== null && this.#finishReason === null) this.#endChoice(this.#index);
      this.#finish(this.#finishReason ?? "stop");
      return this.#takeEvents();
    }
    const chunk = parsedChunk(data);
    if (this.#response) this.#takeLate(this.#response, chunk);
    else if (isErrorChunk(event, chunk)) this.#fail(data);
    else if (isObject(chunk)) this.#takeChunk(chunk);
    return this.#takeEvents();
  }

  /** The last event, where the choice has ended; nothing for a stream that has broken off. */
  end(): EventSourceMessage[] {
    if (this.#finishReason !== null && !this.#hasFailed) this.#finish(this.#finishReason);
    return this.#takeEvents();
  }

  #takeChunk(chunk: JsonObject): void {
    const usage = usageIn(chunk);
    if (usage) this.#addUsage(usage);
    const { model, tier } = servedBy(chunk);
    this.#writer.begin({ model, service_tier: tier });
    for (const [position, sent] of (Array.isArray(chunk.choices) ? chunk.choices : []).entries()) {
      this.#hasOutput ||= hasOutput(sent);
      const choice = this.#mender.mend(sent, position);
      if (choice) this.#takeChoice(choice);
    }
  }

  #addUsage(usage: JsonObject): JsonObject {
    return this.#usage = this.#usage ? joinReports(this.#usage, usage) : usage;
  }

  #endChoice(index: number): void {
    const choice = this.#mender.mend({ index, delta: {}, finish_reason: "stop" }, index);
    if (choice) this.#takeChoice(choice);
  }

  #takeChoice(choice: JsonObject): void {
    const { index, delta, logprobs } = choice;
    // The request asks for one choice.
    this.#index ??= plainNumber(index);
    if (this.#index !== index) return;
    if (isObject(delta)) writeMessage(this.#writer, delta, logprobs);
    const reason = finishReasonOf(choice);
    if (reason !== null) this.#finishReason = reason;
  }

  #finish(reason: string): void {
    if (this.#response) return;
    this.#response = this.#writer.finish(this.#index === null ? null : reason, this.#usage);
  }

  /** Some servers report usage after the end: the last event is sent again with it. */
  #takeLate(response: JsonObject, chunk: Json | undefined): void {
    const usage = isObject(chunk) ? usageIn(chunk) : undefined;
    if (!usage) return;
    this.#response = { ...response, usage: usageFromChat(this.#addUsage(usage)) };
    this.#emit(`response.${response.status}`, { response: this.#response });
  }

  /**
   * The upstream's error as an event. The error itself stands in it too, since its type says whose
   * fault it is.
   */
  #fail(data: string): void {
    this.#hasFailed = true;
    const redacted = redactKey(data, this.#options.apiKey);
    const sent = parsedChunk(redacted);
    const body = Array.isArray(sent) ? sent[0] : sent;
    const error = isObject(body) ? errorIn(body) ?? body : redacted;
    const { message = error, code, type, param = null } = isObject(error) ? error : {};
    const text = typeof message === "string" ? message : JSON.stringify(message);
    const name = code ?? type ?? null;
    this.#emit("error", {
      code: name === null ? null : plainText(name),
      message: text,
      param,
      error: isObject(error) ? error : { message: text },
    });
  }

  #emit(type: string, fields: JsonObject): void {
    const data = JSON.stringify({ type, ...fields, sequence_number: this.#sequence++ });
    this.#events.push({ event: type, data, id: undefined });
  }

  #takeEvents(): EventSourceMessage[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
