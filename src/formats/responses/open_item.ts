import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { writtenTexts } from "./output_items.ts";
import { textName } from "./stream_events.ts";

/** A content part of an item whose events arrive. */
interface OpenPart {
  /** The part as its first event had it, or whole once it has ended. */
  part: JsonObject;
  isTextDone: boolean;
  isDone: boolean;
}

/** An item of a response while its events arrive: what has been written of it, and what ended. */
export class OpenItem {
  readonly index: number;
  /** The item as its first event had it, or whole once it has ended. */
  item: JsonObject;
  readonly parts = new Map<number, OpenPart>();
  /** Whether the item's one text that is no part, such as arguments, has ended. */
  isTextDone = false;
  isDone = false;
  /** Whether the item's first event has arrived. If not, only texts of the item have. */
  isBegun = true;
  /** The caller has got its beginning. */
  isSent = true;
  /** Texts by their place, as `writtenTexts` names it. */
  readonly #texts = new Map<string, string>();
  readonly #addText: (text: string) => void;

  constructor(index: number, item: JsonObject, addText: (text: string) => void) {
    this.index = index;
    this.item = item;
    this.#addText = addText;
  }

  /** Adds and meters a piece of the text at a place. */
  addText(place: string, text: string): void {
    this.#texts.set(place, (this.#texts.get(place) ?? "") + text);
    this.#addText(text);
  }

  /** Takes the whole text at a place, and meters what did not arrive in pieces. */
  setText(place: string, text: string): void {
    const known = this.#texts.get(place)?.length ?? 0;
    if (text.length > known) this.#addText(text.slice(known));
    if (text.length >= known) this.#texts.set(place, text);
  }

  /** Takes the item as it is at its end. */
  end(item: JsonObject): void {
    for (const [place, text] of writtenTexts(item)) this.setText(place, text);
    this.item = item;
  }

  /** Adds a text of ours to the last part, which is not metered. */
  append(text: string): void {
    const [at] = this.lastPart() ?? [0];
    const place = `content.${at}`;
    this.#texts.set(place, (this.#texts.get(place) ?? "") + text);
  }

  /** The last content part, with its index. */
  lastPart(): [number, OpenPart] | null {
    return [...this.parts].at(-1) ?? null;
  }

  /** A part with the text that has arrived. */
  partNow(at: number, { part }: OpenPart): JsonObject {
    const name = textName(part);
    return name === null ? part : { ...part, [name]: this.#texts.get(`content.${at}`) ?? "" };
  }

  /** The item with all that has arrived. */
  now(): JsonObject {
    if (this.isDone) return this.item;
    const { item } = this;
    const text = (place: string) => this.#texts.get(place) ?? item[place] ?? "";
    switch (item.type) {
      case "message":
        return this.parts.size === 0
          ? item
          : { ...item, content: [...this.parts].map(([at, part]) => this.partNow(at, part)) };
      case "function_call":
        return { ...item, arguments: text("arguments") };
      case "custom_tool_call":
        return { ...item, input: text("input") };
      case "reasoning":
        return { ...item, summary: this.#summary() };
      default:
        return item;
    }
  }

  #summary(): Json {
    const parts: JsonObject[] = [];
    for (const [place, text] of this.#texts) {
      if (place.startsWith("summary.")) parts.push({ type: "summary_text", text });
    }
    return parts.length > 0 ? parts : this.item.summary ?? [];
  }

  /** Whether all that was begun has been written. */
  get isWritten(): boolean {
    if (this.isDone || this.isTextDone) return true;
    const parts = [...this.parts.values()];
    return parts.length > 0 && parts.every(({ isDone, isTextDone }) => isDone || isTextDone);
  }

  /** Every text so far. */
  texts(): Iterable<string> {
    return this.#texts.values();
  }
}

/** Whose text an event has: the type of its item where only one has it, and the member in that. */
interface TextOwner {
  item: string | null;
  member: string;
}

/** The owners of texts, by the name of their events. */
const owners = new Map<string, TextOwner>(Object.entries({
  output_text: { item: "message", member: "content" },
  refusal: { item: "message", member: "content" },
  reasoning_text: { item: "reasoning", member: "content" },
  reasoning: { item: "reasoning", member: "content" },
  reasoning_summary_text: { item: "reasoning", member: "summary" },
  reasoning_summary: { item: "reasoning", member: "summary" },
  content_part: { item: null, member: "content" },
  function_call_arguments: { item: "function_call", member: "arguments" },
  mcp_call_arguments: { item: "mcp_call", member: "arguments" },
  custom_tool_call_input: { item: "custom_tool_call", member: "input" },
  code_interpreter_call_code: { item: "code_interpreter_call", member: "code" },
  shell_call_command: { item: "shell_call", member: "action" },
  apply_patch_call_operation_diff: { item: "apply_patch_call", member: "operation" },
}));

/** The part of an event's type between `response.` and its last word. */
export function nameOfEvent(type: string): string {
  return type.slice("response.".length, type.lastIndexOf("."));
}

/** The owner of an event's text; undefined for other events. */
export function ownerOfText(type: string): TextOwner | undefined {
  return owners.get(nameOfEvent(type));
}

/** The place of an event's text; `name` is its type without `response.` and its last word. */
export function placeOfText(name: string, event: JsonObject): string {
  const member = owners.get(name)?.member ?? name;
  if (member === "content") return `content.${indexIn(event.content_index)}`;
  return member === "summary" ? `summary.${indexIn(event.summary_index)}` : member;
}

/** An index in an event; zero where it has none. */
export function indexIn(value: Json | undefined): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

const wholeTexts = [
  "text",
  "refusal",
  "arguments",
  "input",
  "code",
  "transcript",
  "command",
  "diff",
];

/** The whole text in an event that ends one; null for other events. */
export function wholeTextIn(event: JsonObject): string | null {
  for (const name of wholeTexts) {
    const text = event[name];
    if (typeof text === "string") return text;
  }
  return null;
}

/** The text of a delta: also of one that is an object, as older servers send arguments. */
export function deltaIn({ delta }: JsonObject): string {
  if (typeof delta === "string") return delta;
  return isObject(delta) ? JSON.stringify(delta) : "";
}
