import { isObject, type JsonObject, plainText } from "../../base/json.ts";
import type { ResponseHead } from "../../inference/upstream_response.ts";
import { indexIn, type OpenItem, ownerOfText, wholeTextIn } from "./open_item.ts";
import { itemId, normalizeItem, normalizePart } from "./output_items.ts";
import type { OutputState } from "./output_state.ts";
import { responseIdPrefix } from "./own_ids.ts";
import { emptied, itemEvents, partAdded } from "./stream_events.ts";

const partAddedType = "response.content_part.added";
const partDoneType = "response.content_part.done";
const itemAddedType = "response.output_item.added";

/** The events that clients get for an event of the upstream. */
interface Repaired {
  /** Events that the upstream has left out before it. */
  before: readonly JsonObject[];
  /**
   * The event as clients expect it: the same object where it lacks nothing; null for one that says
   * nothing, or begins what has begun already, or is about an item that has not begun.
   */
  event: JsonObject | null;
}
const none: readonly JsonObject[] = [];
const nothing: Repaired = { before: none, event: null };

/**
 * Brings a stream's events into the order and the form that clients rely on: an item begins before
 * its parts, a part before its text, and each event names its item.
 */
export class EventRepair {
  readonly #state: OutputState;
  readonly #unique: string;

  constructor(state: OutputState, { id }: ResponseHead) {
    this.#state = state;
    this.#unique = id.slice(responseIdPrefix.length);
  }

  /** Returns the events that clients get for an event of the upstream. */
  repair(type: string, event: JsonObject): Repaired {
    if (type.endsWith(".delta") && event.delta === undefined) return nothing;
    if (type === itemAddedType || type === "response.output_item.done") {
      return this.#withItem(type, event);
    }
    const isPart = type === partAddedType || type === partDoneType;
    const part = isPart ? normalizePart(event.part) : null;
    if (isPart && part === null) return nothing;
    const owner = ownerOfText(type);
    const member = owner?.member;
    const isEnd = member !== undefined && !isPart && type.endsWith(".done");
    if (isEnd && wholeTextIn(event) === null) return nothing;
    const isOfItem = member !== undefined || "output_index" in event || "item_id" in event;
    if (!isOfItem) return { before: none, event };
    const begun = this.#state.itemOf(event);
    const wanted = part ? ownerOfPart(part) : owner?.item;
    // Clients fail on a text in an item of another type, or in one that has ended.
    if (owner && begun && (begun.isDone || (wanted && begun.item.type !== wanted))) return nothing;
    const before = this.#missingBefore(type, member, event);
    const known = this.#state.itemOf(event);
    if (!known) return nothing;
    const named = withPlace(event, known, member);
    if (part === null) return { before, event: named };
    if (type === partAddedType && known.parts.has(indexIn(event.content_index))) return nothing;
    return { before, event: part === event.part ? named : { ...named, part } };
  }

  /** An event with a whole item, and its place in the output. */
  #withItem(type: string, event: JsonObject): Repaired {
    const index = this.#state.indexOfItem(type, event);
    const known = this.#state.itemAt(index);
    if (type === itemAddedType && known) return nothing;
    const found = normalizeItem(event.item, (kind) => itemId(kind, this.#unique, index));
    if (found === null) return nothing;
    // An item keeps the id that it began with.
    const id = known?.item.id ?? found.id ?? null;
    const item = found.id === id ? found : { ...found, id };
    const isSame = item === event.item && index === event.output_index;
    const whole = isSame ? event : { ...event, output_index: index, item };
    // An item that ends before it began has all of its events now.
    const before = known || type === itemAddedType
      ? none
      : [...itemEvents(item, index)].slice(0, -1);
    return { before, event: whole };
  }

  /** Events that an upstream has left out before this one; the state takes them. */
  #missingBefore(
    type: string,
    member: string | undefined,
    event: JsonObject,
  ): readonly JsonObject[] {
    const { part } = event;
    const isReasoning = type.startsWith("response.reasoning") ||
      (isObject(part) && part.type === "reasoning_text");
    if (member !== "content" && member !== "summary") return none;
    const known = this.#state.itemOf(event);
    const at = indexIn(event.content_index);
    const needsPart = !isReasoning && type !== partAddedType;
    if (known && (!needsPart || known.parts.has(at))) return none;
    const missing: JsonObject[] = [];
    const open = known ?? this.#begin(isReasoning ? "reasoning" : "message", event, missing);
    if (!needsPart) return missing;
    const begun: JsonObject = normalizePart(part) ??
      (type.startsWith("response.refusal")
        ? { type: "refusal", refusal: "" }
        : { type: "output_text", text: "", annotations: [] });
    this.#state.openPart(open, at, begun);
    const { index, item: { id } } = open;
    missing.push(
      partAdded(begun, { item_id: plainText(id), output_index: index, content_index: at }),
    );
    return missing;
  }

  /** Begins the item that an event belongs to. */
  #begin(type: "message" | "reasoning", event: JsonObject, missing: JsonObject[]): OpenItem {
    const index = Math.max(0, this.#state.indexOf(event));
    const { item_id: sent } = event;
    const id = typeof sent === "string" ? sent : itemId(type, this.#unique, index);
    const message = { id, type, role: "assistant", content: [] };
    const item = emptied(type === "message" ? message : { id, type, summary: [] });
    missing.push({ type: itemAddedType, output_index: index, item });
    return this.#state.open(index, item);
  }
}

/** The type of the items that have such parts. */
function ownerOfPart({ type }: JsonObject): string {
  return type === "reasoning_text" ? "reasoning" : "message";
}

/** An event that names its item by its place, and by the id that the item began with. */
function withPlace(
  event: JsonObject,
  { index, item: { id } }: OpenItem,
  member: string | undefined,
): JsonObject {
  const part = member === "content"
    ? "content_index"
    : member === "summary"
    ? "summary_index"
    : null;
  const isSame = event.output_index === index && (event.item_id === id || typeof id !== "string") &&
    (part === null || typeof event[part] === "number");
  if (isSame) return event;
  const place = part === null ? {} : { [part]: indexIn(event[part]) };
  return { ...event, output_index: index, item_id: id ?? null, ...place };
}

/** The response in an event; empty where it has none. */
export function responseIn({ response }: JsonObject): JsonObject {
  return isObject(response) ? response : {};
}
