import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";

// The events that say what a whole response says, without their numbers.

/** The place of an event: its item, and the content part or the summary part. */
interface EventPlace {
  item_id: string;
  output_index: number;
  [index: string]: Json;
}

/** The type of the event that ends a response, by its status. */
export function finalType({ status }: JsonObject): string {
  return status === "incomplete" || status === "failed"
    ? `response.${status}`
    : "response.completed";
}

/** The events of a whole response, from `response.created` to its end. */
export function* responseEvents(response: JsonObject): Generator<JsonObject> {
  yield* openingEvents(response);
  const output = Array.isArray(response.output) ? response.output.filter(isObject) : [];
  for (const [index, item] of output.entries()) yield* itemEvents(item, index);
  yield { type: finalType(response), response };
}

/** The events that begin a response. */
export function* openingEvents(response: JsonObject): Generator<JsonObject> {
  const begun = {
    ...response,
    status: "in_progress",
    output: [],
    usage: null,
    error: null,
    incomplete_details: null,
  };
  yield { type: "response.created", response: begun };
  yield { type: "response.in_progress", response: begun };
}

/** The events of one item, which is whole. */
export function* itemEvents(item: JsonObject, index: number): Generator<JsonObject> {
  const place = { item_id: plainText(item.id), output_index: index };
  yield { type: "response.output_item.added", output_index: index, item: emptied(item) };
  switch (item.type) {
    case "message":
      yield* partEvents(item.content, place);
      break;
    case "reasoning":
      yield* summaryEvents(item.summary, place);
      break;
    case "function_call":
      yield* textEvents("response.function_call_arguments", place, {
        text: item.arguments,
        done: { arguments: item.arguments ?? "", name: item.name ?? "" },
      });
      break;
    case "custom_tool_call":
      yield* textEvents("response.custom_tool_call_input", place, {
        text: item.input,
        done: { input: item.input ?? "" },
      });
  }
  yield { type: "response.output_item.done", output_index: index, item };
}

/** An item as it begins: without what its other events say. */
export function emptied(item: JsonObject): JsonObject {
  const begun = { ...item, status: "in_progress" };
  switch (item.type) {
    case "message":
      return { ...begun, content: [] };
    case "reasoning":
      return { ...item, summary: [] };
    case "function_call":
      return { ...begun, arguments: "" };
    case "custom_tool_call":
      return { ...begun, input: "" };
    default:
      return item;
  }
}

function* partEvents(content: Json | undefined, place: EventPlace): Generator<JsonObject> {
  if (!Array.isArray(content)) return;
  for (const [at, part] of content.filter(isObject).entries()) {
    const here = { ...place, content_index: at };
    yield partAdded(part, here);
    const name = textName(part);
    const text = name === null ? null : part[name];
    if (typeof text === "string" && text !== "") {
      const more: JsonObject = name === "text" ? { logprobs: [] } : {};
      yield { type: `${partEvent(part)}.delta`, ...here, delta: text, ...more };
    }
    yield* partEndings(part, here, { isTextDone: false });
  }
}

/** The event that begins a part of a message. */
export function partAdded(part: JsonObject, place: EventPlace): JsonObject {
  const name = textName(part);
  const begun = name === null ? part : { ...part, [name]: "" };
  return { type: "response.content_part.added", ...place, part: begun };
}

/** The event that adds a text to an `output_text` part. */
export function textDelta(delta: string, place: EventPlace): JsonObject {
  return { type: "response.output_text.delta", ...place, delta, logprobs: [] };
}

/** The beginning of the types of events about a part's text. */
function partEvent({ type }: JsonObject): string {
  return type === "refusal" ? "response.refusal" : "response.output_text";
}

/** The member of a part that has its text; null for other parts. */
export function textName({ type }: JsonObject): "text" | "refusal" | null {
  if (type === "output_text") return "text";
  return type === "refusal" ? "refusal" : null;
}

/** The events that end a part of a message whose text has been sent. */
export function* partEndings(
  part: JsonObject,
  place: EventPlace,
  { isTextDone }: { isTextDone: boolean },
): Generator<JsonObject> {
  const name = textName(part);
  if (name !== null && !isTextDone) {
    const more: JsonObject = name === "text" ? { logprobs: [] } : {};
    yield { type: `${partEvent(part)}.done`, ...place, [name]: part[name] ?? "", ...more };
  }
  yield { type: "response.content_part.done", ...place, part };
}

function* summaryEvents(summary: Json | undefined, place: EventPlace): Generator<JsonObject> {
  if (!Array.isArray(summary)) return;
  for (const [at, part] of summary.filter(isObject).entries()) {
    const here = { ...place, summary_index: at };
    yield { type: "response.reasoning_summary_part.added", ...here, part: { ...part, text: "" } };
    yield* textEvents("response.reasoning_summary_text", here, {
      text: part.text,
      done: { text: part.text ?? "" },
    });
    yield { type: "response.reasoning_summary_part.done", ...here, part };
  }
}

function* textEvents(
  name: string,
  place: EventPlace,
  { text, done }: { text: Json | undefined; done: JsonObject },
): Generator<JsonObject> {
  if (typeof text === "string" && text !== "") {
    yield { type: `${name}.delta`, ...place, delta: text };
  }
  yield { type: `${name}.done`, ...place, ...done };
}
