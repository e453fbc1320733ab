import { isObject, type JsonObject } from "../../base/json.ts";
import type { ResponseHead } from "../../inference/format.ts";
import { indexIn, type OpenItem } from "./open_item.ts";
import { itemId, normalizeItem, normalizePart } from "./output_items.ts";
import type { OutputState } from "./output_state.ts";
import { responseIdPrefix } from "./own_ids.ts";
import { emptied, partAdded } from "./stream_events.ts";

/** Events about the text of a message's part, by their type. */
const partTypes = new Map<string, string>(Object.entries({
  "response.output_text.delta": "output_text",
  "response.output_text.done": "output_text",
  "response.refusal.delta": "refusal",
  "response.refusal.done": "refusal",
}));
const partAddedType = "response.content_part.added";
const itemAddedType = "response.output_item.added";

/** What clients get for an event. */
interface Repaired {
  /** Events that the upstream has left out before it. */
  before: readonly JsonObject[];
  /**
   * The event as clients expect it: the same object where it lacks nothing; null for one that says
   * nothing, or begins what has begun already.
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

  /** What clients get for an event. */
  repair(type: string, event: JsonObject): Repaired {
    if (type.endsWith(".delta") && event.delta === undefined) return nothing;
    if (type === itemAddedType || type === "response.output_item.done") {
      return { before: none, event: this.#withItem(type, event) };
    }
    const isPart = type === partAddedType || type === "response.content_part.done";
    const part = isPart ? normalizePart(event.part) : null;
    if (isPart && part === null) return nothing;
    const before = this.#missingBefore(type, event);
    const known = this.#state.itemOf(event);
    const isOfItem = isPart || partTypes.has(type) || "output_index" in event || "item_id" in event;
    const named = known && isOfItem ? withPlace(event, known) : event;
    if (!isPart) return { before, event: named };
    if (type === partAddedType && known?.parts.has(indexIn(event.content_index))) return nothing;
    return { before, event: part === event.part ? named : { ...named, part } };
  }

  /** An event with a whole item, and its place in the output. */
  #withItem(type: string, event: JsonObject): JsonObject | null {
    const index = this.#state.indexOfItem(type, event);
    const known = this.#state.itemAt(index);
    if (type === itemAddedType && known) return null;
    const item = normalizeItem(event.item, (kind) => {
      return String(known?.item.id ?? itemId(kind, this.#unique, index));
    });
    if (item === null) return null;
    return item === event.item && index === event.output_index
      ? event
      : { ...event, output_index: index, item };
  }

  /** Events that an upstream has left out before this one; the state takes them. */
  #missingBefore(type: string, event: JsonObject): readonly JsonObject[] {
    const kind = partTypes.get(type);
    if (kind === undefined && type !== partAddedType) return none;
    const known = this.#state.itemOf(event);
    const at = indexIn(event.content_index);
    if (known && (kind === undefined || known.parts.has(at))) return none;
    const missing: JsonObject[] = [];
    const index = known?.index ?? Math.max(0, this.#state.indexOf(event));
    const open = known ?? this.#begin(index, event, missing);
    if (kind === undefined) return missing;
    const part: JsonObject = kind === "refusal"
      ? { type: kind, refusal: "" }
      : { type: kind, text: "", annotations: [] };
    this.#state.openPart(open, at, part);
    const place = { item_id: String(open.item.id), output_index: index, content_index: at };
    missing.push(partAdded(part, place));
    return missing;
  }

  /** Begins the message that an event belongs to. */
  #begin(index: number, { item_id: sent }: JsonObject, missing: JsonObject[]): OpenItem {
    const id = typeof sent === "string" ? sent : itemId("message", this.#unique, index);
    const item = emptied({ id, type: "message", role: "assistant", content: [] });
    missing.push({ type: itemAddedType, output_index: index, item });
    return this.#state.open(index, item);
  }
}

/** An event that names its item by its place, and by the id that the item began with. */
function withPlace(event: JsonObject, { index, item: { id } }: OpenItem): JsonObject {
  if (index < 0) return event;
  const isSame = event.output_index === index && (event.item_id === id || typeof id !== "string");
  return isSame ? event : { ...event, output_index: index, item_id: id ?? null };
}

/** The response in an event; empty where it has none. */
export function responseIn({ response }: JsonObject): JsonObject {
  return isObject(response) ? response : {};
}
