import type { Json, JsonObject } from "../../base/json.ts";
import type { ResponseScanner, ServedBy } from "../../inference/upstream_response.ts";
import { JsonScanner, type ScannedPlace } from "../openai/response_scanner.ts";
import { servedBy } from "../openai/usage.ts";
import { ToolCallCount, usageWithTools } from "./tool_calls.ts";

const named = new Set(["model", "service_tier"]);

/**
 * Reads what is charged from a response, or from an event, that is too large to be parsed: usage,
 * calls of tools, the model and the service tier, on top or within `response`.
 */
export class ResponsesScanner implements ResponseScanner {
  /** The type of the event; "" for a whole response. */
  type = "";
  hasImage = false;
  /** The members of the event's item that tell which tool it calls. */
  readonly item: JsonObject = {};
  readonly #response: JsonObject = {};
  readonly #calls = new ToolCallCount();
  readonly #scanner = new JsonScanner({
    isWanted: (place) => {
      const name = memberOf(place);
      return name === "usage" || name === "tool_usage";
    },
    onObject: (value, place) => {
      this.#response[memberOf(place) ?? ""] = value;
    },
    onString: (text, place) => this.#takeString(text, place),
  });

  push(text: string): void {
    this.#scanner.push(text);
  }

  get served(): ServedBy {
    return servedBy(this.#response);
  }

  get usages(): readonly Json[] {
    return [usageWithTools(this.#response, this.#calls.calls) ?? []].flat();
  }

  #takeString(text: string, place: ScannedPlace): void {
    const { depth, keys } = place;
    const name = memberOf(place);
    if (name !== null && named.has(name)) this.#response[name] = text;
    if (depth === 1 && keys[1] === "type") this.type = text;
    if (depth === 2 && keys[1] === "item" && keys[2] === "type") this.item.type = text;
    if (isTypeOfItem(place)) this.#calls.add({ type: text });
    if (isTypeOfPart(place) && text.includes("image")) this.hasImage = true;
  }
}

/** The member of the response that stands here; null for what is deeper, or beside it. */
function memberOf({ depth, keys }: ScannedPlace): string | null {
  if (depth === 1) return keys[1] ?? null;
  return depth === 2 && keys[1] === "response" ? keys[2] ?? null : null;
}

/** Whether the type of a content part of the event's item stands here. */
function isTypeOfPart({ depth, keys, isList }: ScannedPlace): boolean {
  return depth === 4 && keys[1] === "item" && keys[2] === "content" && isList[3] === true &&
    keys[4] === "type";
}

/** Whether the type of an item of the output stands here. */
function isTypeOfItem({ depth, keys, isList }: ScannedPlace): boolean {
  const at = keys[1] === "response" ? 2 : 1;
  return depth === at + 2 && keys[at] === "output" && isList[at + 1] === true &&
    keys[depth] === "type";
}
