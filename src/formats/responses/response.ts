import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import type { Secret } from "../../base/secret.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type {
  CompleteResponse,
  EventAssembler,
  KeptIds,
  ResponseHead,
} from "../../inference/upstream_response.ts";
import { invalidUpstreamResponse, upstreamDisconnected } from "../../upstreams/errors.ts";
import { parseResponse } from "../openai/response.ts";
import { parsedChunk } from "../openai/stream_error.ts";
import { servedBy } from "../openai/usage.ts";
import { closingOf, completedMembers, ownMessage, withClosing } from "./closing.ts";
import { errorOfOwnEvent, eventType, failureOf } from "./failure.ts";
import { imagesIn, isCallersCall, writtenTexts } from "./output_items.ts";
import { OutputState } from "./output_state.ts";
import { ownIds } from "./own_ids.ts";
import { isCutByBound, isFailed, normalizeObject, normalizeOutput } from "./response_object.ts";
import { responseEvents } from "./stream_events.ts";
import { ToolCallCount, usageWithTools } from "./tool_calls.ts";

/** The values that reading a response needs. */
interface ReadOptions {
  request: ModelRequest;
  head: ResponseHead;
  apiKey: Secret | null;
}

/** The types of the events that end a response. */
export const finalTypes = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
]);

/**
 * Reads a whole response, and adds what clients rely on where an upstream leaves it out. Throws 502
 * for what is no response, or not a finished one, and the error of one that says it failed.
 */
export function readWholeResponse(bytes: Uint8Array, options: ReadOptions): CompleteResponse {
  return completeFrom(parseResponse(bytes), options);
}

/** Ids that the upstream keeps: null where it was asked not to, or says that it does not. */
export function keptIds(
  { body }: ModelRequest,
  response: JsonObject,
  { items, output }: { items: Iterable<string>; output: () => readonly JsonObject[] },
): KeptIds | null {
  if (body.store === false || response.store === false) return null;
  return typeof response.id === "string" && response.id !== ""
    ? { response: response.id, items: [...items], output }
    : null;
}

function completeFrom(sent: JsonObject, options: ReadOptions): CompleteResponse {
  const { request, head, apiKey } = options;
  if (isFailed(sent)) throw failureOf(sent, apiKey);
  const output = requireOutput(sent, head);
  const object = normalizeObject(sent, { request, head, output });
  const calls = new ToolCallCount();
  for (const item of output) calls.add(item);
  const usage = usageWithTools(sent, calls.calls);
  return {
    kept: keptIds(request, sent, { items: idsIn(sent.output), output: () => output }),
    served: servedBy(sent),
    texts: textsOfItems(output),
    images: output.flatMap(imagesIn),
    isAnswer: () => isAnswer(sent, output),
    usages: usage ? [usage] : [],
    write({ usage, notice, balance }) {
      const isCut = isCutByBound(object);
      const closing = closingOf({ output, isCut }, { notice, request, balance });
      const own = (text: string) => ownMessage(ownIds(head, request).message, text);
      const shown = withClosing(output, closing, own);
      const ended = closing.isCompleted ? completedMembers : {};
      return JSON.stringify({ ...object, ...ended, output: shown, usage });
    },
    events: () => asMessages(responseEvents({ ...object, usage: usage ?? null })),
  };
}

/** Whether a response is complete, with a text or a call, and no refusal. */
function isAnswer(sent: JsonObject, output: readonly JsonObject[]): boolean {
  if (sent.status !== "completed" || isObject(sent.incomplete_details)) return false;
  const parts = output.flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(isObject);
  const isWhole = output.every(({ status }) => status === undefined || status === "completed");
  const isRefused = parts.some(({ type }) => type === "refusal");
  return isWhole && !isRefused &&
    (output.some(isCallersCall) ||
      parts.some(({ text, type }) =>
        type === "output_text" ? Boolean(text) : type === "output_image"
      ));
}

/** Throws 502 for a response without output, and for one that is not finished. */
export function requireOutput(sent: JsonObject, head: ResponseHead): JsonObject[] {
  if (!Array.isArray(sent.output)) throw invalidUpstreamResponse("a response without output");
  const output = normalizeOutput(sent.output, head);
  const isUnfinished = sent.status === "queued" || sent.status === "in_progress";
  if (output.length === 0 && (isUnfinished || !isObject(sent.usage))) {
    throw invalidUpstreamResponse("a response whose output is empty");
  }
  return output;
}

function asMessages(events: Iterable<JsonObject>): EventSourceMessage[] {
  return Array.from(events, (event, sequence_number) => ({
    id: undefined,
    event: plainText(event.type),
    data: JSON.stringify({ ...event, sequence_number }),
  }));
}

function* textsOfItems(output: readonly JsonObject[]): Generator<string> {
  for (const item of output) for (const [, text] of writtenTexts(item)) yield text;
}

/** Ids of the items of an output, as the upstream sent them. */
export function* idsIn(output: Json | undefined): Generator<string> {
  if (!Array.isArray(output)) return;
  for (const item of output) if (isObject(item) && typeof item.id === "string") yield item.id;
}

/** Reads the events of a stream as a whole response. */
export class ResponseAssembler implements EventAssembler {
  readonly usages: Json[] = [];
  readonly #options: ReadOptions;
  readonly #state = new OutputState(() => {});
  #start: JsonObject = {};
  #final: JsonObject | null = null;
  #isDone = false;

  constructor(options: ReadOptions) {
    this.#options = options;
  }

  add(message: EventSourceMessage, { usageOnly }: { usageOnly: boolean }): void {
    const error = errorOfOwnEvent(message, this.#options.apiKey);
    if (error) throw error;
    if (message.data === "[DONE]") this.#isDone = true;
    const event = parsedChunk(message.data);
    if (!isObject(event)) return;
    const type = eventType(event, message);
    const response = isObject(event.response) ? event.response : {};
    const usage = usageWithTools(response, {});
    if (usage) this.usages.push(usage);
    if (usageOnly) return;
    if (finalTypes.has(type)) this.#final = response;
    else if (isObject(event.response)) this.#start = response;
    else this.#state.take(type, event);
  }

  texts(): Iterable<string> {
    return this.#final ? textsOfFinal(this.#final) : this.#state.texts();
  }

  complete(): CompleteResponse {
    const final = this.#final;
    if (!final && !this.#isDone && !this.#state.isComplete) {
      throw upstreamDisconnected("a stream without its end");
    }
    const { usage: _unknown, status: _running, ...start } = this.#start;
    const whole = final ?? start;
    const isEmpty = !Array.isArray(whole.output) || whole.output.length === 0;
    const output = isEmpty ? this.#state.output() : whole.output ?? [];
    const complete = completeFrom({ ...start, ...final, output }, this.#options);
    return { ...complete, usages: [...this.usages, ...complete.usages] };
  }
}

function textsOfFinal({ output }: JsonObject): Iterable<string> {
  return textsOfItems(Array.isArray(output) ? output.filter(isObject) : []);
}
