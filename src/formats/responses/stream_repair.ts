import { isObject, type JsonObject } from "../../base/json.ts";
import type { ResponseHead } from "../../inference/format.ts";
import { indexIn } from "./open_item.ts";
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

  /**
   * An event as clients expect it: the same object where it lacks nothing; null for the beginning
   * of what has begun already.
   */
  repaired(type: string, event: JsonObject): JsonObject | null {
    const known = this.#state.itemOf(event);
    if (type === itemAddedType || type === "response.output_item.done") {
      if (type === itemAddedType && known && event.output_index === known.index) return null;
      const item = normalizeItem(event.item, (kind) => {
        return String(known?.item.id ?? itemId(kind, this.#unique, this.#state.indexOf(event)));
      });
      return item === null || item === event.item ? event : { ...event, item };
    }
    const named = known ? withItem(event, known.item) : event;
    if (type !== partAddedType && type !== "response.content_part.done") return named;
    if (type === partAddedType && known?.parts.has(indexIn(event.content_index))) return null;
    const part = normalizePart(event.part);
    return part === null || part === event.part ? named : { ...named, part };
  }

  /** Events that an upstream has left out before this one; the state takes them. */
  *missingBefore(type: string, event: JsonObject): Generator<JsonObject> {
    const kind = partTypes.get(type);
    if (kind === undefined && type !== partAddedType) return;
    const index = Math.max(0, this.#state.indexOf(event));
    let open = this.#state.itemOf(event);
    if (!open) {
      const { item_id: sent } = event;
      const id = typeof sent === "string" ? sent : itemId("message", this.#unique, index);
      const item = emptied({ id, type: "message", role: "assistant", content: [] });
      open = this.#state.open(index, item);
      yield { type: itemAddedType, output_index: index, item };
    }
    const at = indexIn(event.content_index);
    if (kind === undefined || open.parts.has(at)) return;
    const part: JsonObject = kind === "refusal"
      ? { type: kind, refusal: "" }
      : { type: kind, text: "", annotations: [] };
    this.#state.openPart(open, at, part);
    const place = { item_id: String(open.item.id), output_index: index, content_index: at };
    yield partAdded(part, place);
  }
}

/** An event that names its item by the id that the item began with. */
function withItem(event: JsonObject, { id }: JsonObject): JsonObject {
  return event.item_id === id || typeof id !== "string" ? event : { ...event, item_id: id };
}

/** The response in an event; empty where it has none. */
export function responseIn({ response }: JsonObject): JsonObject {
  return isObject(response) ? response : {};
}
