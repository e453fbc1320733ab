import {
  isObject,
  type Json,
  type JsonObject,
  plainNumber,
  plainText,
} from "../../../base/json.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";
import type { ResponseHead } from "../../../inference/upstream_response.ts";
import { isBlocked } from "../../openai/choice_end.ts";
import {
  CallItem,
  type EmitEvent,
  type ItemPlace,
  MessageItem,
  type OutputItem,
  ReasoningItem,
} from "./output_items.ts";
import type { ChatReasoning } from "./reasoning.ts";
import { responseObject } from "./response_object.ts";
import { readTools, type ToolTable } from "./tools.ts";
import { usageFromChat } from "./usage.ts";

interface WriterOptions {
  request: ModelRequest;
  head: ResponseHead;
  emit: EmitEvent;
}

/** The fields of the upstream's response besides its output. */
interface ServedFields {
  model: string | null;
  service_tier: string | null;
}

/** Why a chat ended before its output was complete, by its finish reason. */
const incompleteReasons = new Map([
  ["length", "max_output_tokens"],
  ["max_tokens", "max_output_tokens"],
  ["model_length", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);

/** Why a choice of a chat has ended; `content_filter` where it was blocked, null for no reason. */
export function finishReasonOf(choice: JsonObject): string | null {
  const { finish_reason: reason } = choice;
  if (typeof reason !== "string") return null;
  return isBlocked(choice) ? "content_filter" : reason;
}

/**
 * Writes a response from what a chat says, piece by piece: its items in the order in which they
 * begin, with the events of each. Calls stay open until the end, since their pieces may alternate.
 */
export class ResponseWriter {
  readonly #emit: EmitEvent;
  readonly #request: ModelRequest;
  /** The end of the ids of items, before their number. */
  readonly #idEnd: string;
  #response: JsonObject;
  #hasBegun = false;
  #tools: ToolTable | null = null;
  /** Items in order; null for one that is still open. */
  readonly #items: (JsonObject | null)[] = [];
  readonly #open = new Map<number, OutputItem>();
  /** The message or the reasoning that grows. */
  #current: { index: number; item: MessageItem | ReasoningItem } | null = null;
  /** Calls by their number in the chat. */
  readonly #calls = new Map<number, CallItem>();

  constructor({ request, head, emit }: WriterOptions) {
    this.#emit = emit;
    this.#request = request;
    this.#idEnd = head.id.replace(/^[a-z]+[-_]/, "");
    this.#response = responseObject(request, head);
  }

  /** Sends the first events, once. */
  begin({ model, service_tier }: ServedFields): void {
    if (model !== null) this.#response.model = model;
    if (service_tier !== null) this.#response.service_tier = service_tier;
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#emit("response.created", { response: this.#response });
    this.#emit("response.in_progress", { response: this.#response });
  }

  addReasoning({ field, text }: ChatReasoning): void {
    if (text !== "") this.#reasoning(field).addText(text);
  }

  /** Adds thinking in the form in which its provider takes it back. */
  addSignedThinking(blocks: readonly Json[]): void {
    this.#reasoning(null).addBlocks(blocks);
  }

  #reasoning(field: ChatReasoning["field"]): ReasoningItem {
    const { reasoning } = this.#request.body;
    const summary = isObject(reasoning) ? reasoning.summary ?? reasoning.generate_summary : null;
    const asSummary = typeof summary === "string";
    return this.#currentAs(
      ReasoningItem,
      () => new ReasoningItem(this.#place("rs"), { field, asSummary }),
    );
  }

  addText(text: string, logprobs: readonly Json[]): void {
    if (text !== "" || logprobs.length > 0) this.#message().addText(text, logprobs);
  }

  addRefusal(text: string): void {
    if (text !== "") this.#message().addRefusal(text);
  }

  addAnnotation(annotation: JsonObject): void {
    this.#message().addAnnotation(annotation);
  }

  /** Adds a piece of a call of a tool; the first one has its id and its name. */
  addCall({ index, id, function: called }: JsonObject): void {
    const { name, arguments: written } = isObject(called) ? called : {};
    const number = plainNumber(index);
    let item = this.#calls.get(number);
    if (!item) {
      this.#closeCurrent();
      item = this.#openCall(plainText(id), plainText(name));
      this.#calls.set(number, item);
    }
    item.addArguments(plainText(written ?? ""));
  }

  /**
   * Ends every item, and sends the last event with the whole response, which it returns. `reason`
   * is the chat's finish reason; null where no choice has arrived.
   */
  finish(reason: string | null, usage: JsonObject | null): JsonObject {
    const cut = incompleteReasons.get(reason ?? "") ?? null;
    // A client that finds neither a message nor a call asks again.
    if (reason !== null && cut === null && !this.#hasAnswer()) this.#message().addText("", []);
    const last = this.#items.length - 1;
    for (const index of [...this.#open.keys()].sort((one, other) => one - other)) {
      this.#close(index, cut !== null && index === last ? "incomplete" : "completed");
    }
    const status = cut === null ? "completed" : "incomplete";
    this.#response = {
      ...this.#response,
      status,
      incomplete_details: cut === null ? null : { reason: cut },
      output: this.#items.filter((item) => item !== null),
      usage: usage && usageFromChat(usage),
    };
    this.#emit(`response.${status}`, { response: this.#response });
    return this.#response;
  }

  /** Whether there is a message or a call. */
  #hasAnswer(): boolean {
    return this.#calls.size > 0 || this.#current?.item instanceof MessageItem ||
      this.#items.some((item) => item?.type === "message");
  }

  #openCall(call_id: string, name: string): CallItem {
    this.#tools ??= readTools(this.#request.body);
    const known = this.#tools.byChatName.get(name);
    const tool = known ?? { kind: "function" as const, name, namespace: null };
    const place = this.#place(tool.kind === "custom" ? "ctc" : "fc");
    const item = new CallItem(place, { call_id, tool });
    this.#open.set(place.output_index, item);
    return item;
  }

  #message(): MessageItem {
    return this.#currentAs(MessageItem, () => new MessageItem(this.#place("msg")));
  }

  /** The item that grows, where it is of this kind, else a new one. */
  #currentAs<Item extends MessageItem | ReasoningItem>(
    kind: new (...options: never[]) => Item,
    create: () => Item,
  ): Item {
    const { item: open } = this.#current ?? {};
    if (open instanceof kind) return open;
    this.#closeCurrent();
    const index = this.#items.length;
    const item = create();
    this.#open.set(index, item);
    this.#current = { index, item };
    return item;
  }

  #closeCurrent(): void {
    if (!this.#current) return;
    this.#close(this.#current.index, "completed");
    this.#current = null;
  }

  #close(index: number, status: "completed" | "incomplete"): void {
    this.#items[index] = this.#open.get(index)?.close(status) ?? null;
    this.#open.delete(index);
  }

  /** The next place in the output. */
  #place(prefix: string): ItemPlace {
    const output_index = this.#items.push(null) - 1;
    return { id: `${prefix}_${this.#idEnd}_${output_index}`, output_index, emit: this.#emit };
  }
}
