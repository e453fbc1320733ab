import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type JsonObject, nestsDeeper } from "../../../base/json.ts";
import { jsonDepthMax } from "../../../base/limits.ts";
import type { BridgeOptions, EventTranslator } from "../../../inference/format.ts";
import { parsedChunk } from "../../openai/stream_error.ts";
import { servedBy } from "../../openai/usage.ts";
import { eventType, failureOf, isErrorEvent } from "../../responses/failure.ts";
import { deltaIn, nameOfEvent, placeOfText, wholeTextIn } from "../../responses/open_item.ts";
import { writtenTexts } from "../../responses/output_items.ts";
import { OutputState } from "../../responses/output_state.ts";
import { finalTypes } from "../../responses/response.ts";
import { isFailed, normalizeOutput } from "../../responses/response_object.ts";
import { EventRepair, responseIn } from "../../responses/stream_repair.ts";
import { usageWithTools } from "../../responses/tool_calls.ts";
import { sentEvent } from "../sent_event.ts";
import { usageFromResponse } from "./usage.ts";
import {
  betweenItems,
  callTypeOf,
  chatReasonOf,
  citationsIn,
  logprobsOf,
  readsLegacyCalls,
  toChatCall,
  writtenPlaces,
} from "./written.ts";

type TextField = "content" | "refusal" | "reasoning_content";

/** What the caller has got of an item. */
interface SentItem {
  item: JsonObject;
  /** The place of the item's call among the calls. */
  call: number;
  /** How many characters of each text were sent, by its place. */
  lengths: Map<string, number>;
}

/** Turns the events of a response into chunks of a chat completion. */
export class ResponseEventTranslator implements EventTranslator {
  readonly #options: BridgeOptions;
  readonly #isLegacy: boolean;
  readonly #state = new OutputState(() => {});
  readonly #repair: EventRepair;
  readonly #items = new Map<number, SentItem>();
  /** The item, or the part of reasoning, that each field was last written from. */
  readonly #sources = new Map<TextField, string>();
  #out: EventSourceMessage[] = [];
  #model: string;
  #calls = 0;
  #isStarted = false;
  #hasOutput = false;
  #isEnded = false;

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#isLegacy = readsLegacyCalls(options.request);
    this.#repair = new EventRepair(this.#state, options.head);
    this.#model = options.head.model;
  }

  take(message: EventSourceMessage): EventSourceMessage[] {
    const { data } = message;
    if (this.#isEnded) return [];
    if (data === "[DONE]") this.#end({ status: "completed" });
    const event = parsedChunk(data);
    // The format of chats reads such errors like its own.
    if (isErrorEvent(message, event)) return [message];
    if (isObject(event) && !nestsDeeper(data, jsonDepthMax)) {
      this.#takeEvent(eventType(event, message), event);
    }
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** Returns no events: a stream that ends before its last event has broken off. */
  end(): EventSourceMessage[] {
    return [];
  }

  #takeEvent(type: string, sent: JsonObject): void {
    if (finalTypes.has(type)) return this.#takeFinal(type, responseIn(sent));
    if (isObject(sent.response)) return this.#start(sent.response);
    const { before, event } = this.#repair.repair(type, sent);
    for (const missing of before) this.#show(String(missing.type), missing);
    if (event === null) return;
    this.#state.take(type, event);
    this.#show(type, event);
  }

  #start(response: JsonObject): void {
    const { model } = servedBy(response);
    this.#model = model ?? this.#model;
    const usage = usageWithTools(response, {});
    if (usage) this.#sendChunk([], { usage: usageFromResponse(usage) });
  }

  #show(type: string, event: JsonObject): void {
    const open = this.#state.itemOf(event);
    const { item } = event;
    const known = isObject(item) ? item : open?.item;
    const index = open?.index ?? event.output_index;
    if (!known || typeof index !== "number") return;
    const shown = this.#itemAt(index, known);
    if (type === "response.output_item.done") return this.#endItem(index, known);
    const name = nameOfEvent(type);
    const place = placeOfText(name, event);
    if (type.endsWith(".delta")) {
      this.#addText(shown, { index, place, name, logprobs: event.logprobs }, deltaIn(event));
    } else if (type.endsWith(".done") && isTextEvent(name)) {
      this.#addRest(shown, { index, place, name }, wholeTextIn(event) ?? "");
    }
  }

  /** The item with an index, which begins for the caller where it is a call. */
  #itemAt(index: number, item: JsonObject): SentItem {
    const known = this.#items.get(index);
    if (known) return known;
    const isCall = callTypeOf(item) !== null;
    const shown: SentItem = { item, call: isCall ? this.#calls++ : 0, lengths: new Map() };
    this.#items.set(index, shown);
    if (isCall) this.#sendCall(shown, toChatCall(item, ""));
    return shown;
  }

  /** Sends what the whole item has and its events have not said. */
  #endItem(index: number, item: JsonObject): void {
    const shown = this.#itemAt(index, item);
    const type = callTypeOf(item);
    for (const [place, text] of writtenTexts(item)) {
      const isOwn = type === null ? place.includes(".") : place === writtenPlaces[type];
      if (isOwn) this.#addRest(shown, { index, place, name: nameOfPlace(item, place) }, text);
    }
    const annotations = item.type === "message" ? citationsIn(item) : [];
    if (annotations.length > 0) this.#send({ annotations });
  }

  #addRest(shown: SentItem, at: TextPlace, whole: string): void {
    const sent = shown.lengths.get(at.place) ?? 0;
    if (whole.length > sent) this.#addText(shown, at, whole.slice(sent));
  }

  #addText(shown: SentItem, { index, place, name, logprobs }: TextPlace, text: string): void {
    if (text === "") return;
    shown.lengths.set(place, (shown.lengths.get(place) ?? 0) + text.length);
    const type = callTypeOf(shown.item);
    if (type !== null) {
      if (place !== writtenPlaces[type]) return;
      return this.#sendCall(shown, { [type]: { [place]: text } });
    }
    const field = fields.get(name);
    if (field === undefined) return;
    const source = field === "reasoning_content" ? `${index} ${place}` : `${index}`;
    const before = this.#sources.get(field);
    this.#sources.set(field, source);
    const separator = before !== undefined && before !== source ? betweenItems : "";
    this.#send({ [field]: separator + text }, logprobs);
  }

  #sendCall({ call: index }: SentItem, call: JsonObject): void {
    if (this.#isLegacy) this.#send({ function_call: call.function ?? null });
    else this.#send({ tool_calls: [{ index, ...call }] });
  }

  #takeFinal(type: string, response: JsonObject): void {
    const { head, apiKey } = this.#options;
    if (isFailed(response) || type === "response.failed") throw failureOf(response, apiKey);
    this.#state.takeOutput(normalizeOutput(response.output, head));
    for (const { index, item } of this.#state.items()) this.#endItem(index, item);
    this.#end(response);
  }

  /** Ends the stream; one that has said and used nothing ends without a reason. */
  #end(response: JsonObject): void {
    this.#isEnded = true;
    const { model, tier } = servedBy(response);
    this.#model = model ?? this.#model;
    const usage = usageWithTools(response, this.#state.calls.calls);
    if (this.#hasOutput || usage) {
      const reason = chatReasonOf(response, {
        hasCalls: this.#calls > 0,
        isLegacy: this.#isLegacy,
      });
      this.#begin();
      this.#sendChunk([{ index: 0, delta: {}, logprobs: null, finish_reason: reason }], {
        ...(tier === null ? {} : { service_tier: tier }),
      });
    }
    if (usage) this.#sendChunk([], { usage: usageFromResponse(usage) });
    this.#out.push({ data: "[DONE]", event: undefined, id: undefined });
  }

  #begin(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const delta = { role: "assistant", content: "" };
    this.#sendChunk([{ index: 0, delta, logprobs: null, finish_reason: null }]);
  }

  #send(delta: JsonObject, logprobs?: JsonObject[string]): void {
    this.#begin();
    this.#hasOutput = true;
    const choice = { index: 0, delta, logprobs: logprobsOf(logprobs), finish_reason: null };
    this.#sendChunk([choice]);
  }

  #sendChunk(choices: JsonObject[], more: JsonObject = {}): void {
    const { head: { id, created } } = this.#options;
    const chunk = { id, object: "chat.completion.chunk", created, model: this.#model };
    this.#out.push(sentEvent({ ...chunk, choices, ...more }));
  }
}

/** Where a text stands, by the names of its events. */
interface TextPlace {
  index: number;
  place: string;
  name: string;
  logprobs?: JsonObject[string] | undefined;
}

/** The field of a delta, by the name of a text's events. */
const fields: ReadonlyMap<string, TextField> = new Map([
  ["output_text", "content"],
  ["refusal", "refusal"],
  ["reasoning_text", "reasoning_content"],
  ["reasoning", "reasoning_content"],
  ["reasoning_summary_text", "reasoning_content"],
  ["reasoning_summary", "reasoning_content"],
]);

function isTextEvent(name: string): boolean {
  return fields.has(name) || name === "function_call_arguments" ||
    name === "custom_tool_call_input";
}

/** The name of the events of a text in a whole item. */
function nameOfPlace({ type, content }: JsonObject, place: string): string {
  if (type === "reasoning") return "reasoning_text";
  if (type !== "message") return "";
  const part = Array.isArray(content) ? content[Number(place.slice("content.".length))] : null;
  return isObject(part) && part.type === "refusal" ? "refusal" : "output_text";
}
