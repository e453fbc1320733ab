import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import { deltaIn, indexIn, nameOfEvent, OpenItem, placeOfText, wholeTextIn } from "./open_item.ts";
import { isCallersCall, normalizePart } from "./output_items.ts";
import { ToolCallCount } from "./tool_calls.ts";

/** Events and items with the output of tools at the provider: no model wrote it. */
const notWrittenEvents = new Set(["shell_call_output_content", "image_generation_call"]);
/** More items than any model writes; those of a server that sends without end are not kept. */
const itemsMax = 10_000;

/** The output of a response while its events arrive. Every text is metered once. */
export class OutputState {
  readonly calls = new ToolCallCount();
  /** Ids of items as the upstream sent them. */
  readonly sentIds = new Set<string>();
  /** There was sound, whose tokens nobody can count. */
  hasSound = false;
  readonly #items = new Map<number, OpenItem>();
  readonly #byId = new Map<string, number>();
  readonly #addText: (text: string) => void;
  #current = -1;

  constructor(addText: (text: string) => void) {
    this.#addText = addText;
  }

  /** The items in order. */
  items(): OpenItem[] {
    const begun = [...this.#items.values()].filter(({ isBegun }) => isBegun);
    return begun.sort((one, other) => one.index - other.index);
  }

  /** The output with all that has arrived. */
  output(): JsonObject[] {
    return this.items().map((open) => open.now());
  }

  /** Every text so far. */
  *texts(): Generator<string> {
    for (const open of this.#items.values()) yield* open.texts();
  }

  get isEmpty(): boolean {
    return this.#items.size === 0;
  }

  /** Whether every item has been written, and the last one is a message or a call. */
  get isComplete(): boolean {
    const items = this.items();
    const last = items.at(-1);
    return last !== undefined && items.every(({ isWritten }) => isWritten) &&
      (last.item.type === "message" || isCallersCall(last.item));
  }

  /** The index of the item that an event belongs to; -1 where there is none yet. */
  indexOf({ output_index: index, item_id: id }: JsonObject): number {
    const known = typeof id === "string" ? this.#byId.get(id) : undefined;
    return known ?? (isIndex(index) ? index : this.#current);
  }

  /** The index of the item in an event that begins or ends it. */
  indexOfItem(type: string, { output_index: index, item }: JsonObject): number {
    const known = isObject(item) ? this.#byId.get(plainText(item.id)) : undefined;
    if (known !== undefined) return known;
    const isNew = type.endsWith("added");
    // Some servers give every item the same index.
    const isFree = isIndex(index) && !(isNew && this.#items.get(index)?.isDone);
    return isFree ? index : Math.max(0, this.#current + (isNew ? 1 : 0));
  }

  /** The item with an index, if it has begun. */
  itemAt(index: number): OpenItem | undefined {
    const known = this.#items.get(index);
    return known?.isBegun ? known : undefined;
  }

  /** The item that an event belongs to, if it has begun. */
  itemOf(event: JsonObject): OpenItem | undefined {
    return this.itemAt(this.indexOf(event));
  }

  /** Begins an item, unless there are too many. */
  open(index: number, item: JsonObject): OpenItem {
    const open = this.#items.get(index) ?? new OpenItem(index, item, this.#addText);
    open.item = item;
    open.isBegun = true;
    if (this.#items.size >= itemsMax) return open;
    this.#items.set(index, open);
    if (typeof item.id === "string") this.#byId.set(item.id, index);
    this.#current = index;
    return open;
  }

  /** Begins a content part. */
  openPart(open: OpenItem, at: number, part: JsonObject): void {
    open.parts.set(at, { part, isTextDone: false, isDone: false });
  }

  /** Takes an event about an item or its texts, which is as clients expect it. */
  take(type: string, event: JsonObject): void {
    switch (type) {
      case "response.output_item.added":
      case "response.output_item.done":
        if (isObject(event.item)) this.#takeItem(type, event, event.item);
        return;
      case "response.content_part.added":
      case "response.content_part.done":
        return this.#takePart(type, event);
      case "response.output_text.annotation.added":
        return this.#takeAnnotation(event);
      default:
        if (type.startsWith("response.")) this.#takeText(type, event);
    }
  }

  /** Takes the whole output at the end. Items that have not begun are added, yet unsent. */
  takeOutput(output: readonly JsonObject[]): void {
    const isNew = this.items().length === 0;
    for (const [index, item] of output.entries()) {
      const id = typeof item.id === "string" ? this.#byId.get(item.id) : undefined;
      const known = this.itemAt(id ?? index);
      const isKnown = known !== undefined && (id !== undefined || known.item.type === item.type);
      const open = isKnown
        ? known
        : isNew
        ? this.open(index, item)
        : new OpenItem(index, item, this.#addText);
      if (!isKnown) open.isSent = false;
      if (!open.isDone) this.calls.add(item);
      const { id: begun = item.id ?? null } = open.item;
      open.end(begun === item.id ? item : { ...item, id: begun });
    }
  }

  #takeItem(type: string, event: JsonObject, item: JsonObject): void {
    const index = this.indexOfItem(type, event);
    const open = this.itemAt(index) ?? this.open(index, item);
    if (type.endsWith("added") || open.isDone) return;
    open.end(item);
    open.isDone = true;
    this.calls.add(item);
  }

  #takePart(type: string, event: JsonObject): void {
    const open = this.itemOf(event);
    const part = normalizePart(event.part);
    if (!open || !part) return;
    const at = indexIn(event.content_index);
    if (!open.parts.has(at)) this.openPart(open, at, part);
    const known = open.parts.get(at);
    if (type.endsWith("added") || !known) return;
    known.isDone = true;
    known.part = part;
    const text = wholeTextIn(part);
    if (text !== null) open.setText(`content.${at}`, text);
  }

  #takeAnnotation(event: JsonObject): void {
    const known = this.itemOf(event)?.parts.get(indexIn(event.content_index));
    if (!known || event.annotation === undefined) return;
    const { annotations } = known.part;
    const before: Json[] = Array.isArray(annotations) ? annotations : [];
    known.part = { ...known.part, annotations: [...before, event.annotation] };
  }

  #takeText(type: string, event: JsonObject): void {
    const name = nameOfEvent(type);
    const isDelta = type.endsWith(".delta");
    if (notWrittenEvents.has(name)) return;
    if (name === "audio") this.hasSound ||= isDelta;
    else if (isDelta) this.#textItem(event).addText(placeOfText(name, event), deltaIn(event));
    else if (type.endsWith(".done")) this.#endText(name, event);
  }

  #endText(name: string, event: JsonObject): void {
    const text = wholeTextIn(event);
    if (text === null) return;
    const open = this.#textItem(event);
    open.setText(placeOfText(name, event), text);
    const part = open.parts.get(indexIn(event.content_index));
    if (name === "output_text" || name === "refusal") {
      if (part) part.isTextDone = true;
    } else if (isCallersCall(open.item)) open.isTextDone = true;
  }

  /** The item of a text, which may not have begun. */
  #textItem(event: JsonObject): OpenItem {
    const index = this.indexOf(event);
    const known = this.#items.get(index);
    if (known) return known;
    const open = new OpenItem(index, {}, this.#addText);
    open.isBegun = false;
    if (this.#items.size < itemsMax) this.#items.set(index, open);
    return open;
  }
}

function isIndex(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
