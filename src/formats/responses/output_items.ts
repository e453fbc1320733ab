import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import { textsIn } from "../openai/texts_in.ts";
import { words } from "../openai/known_fields.ts";

// The items of a response: what clients rely on in them, and what the model wrote.

/** Calls of tools that the caller runs: nothing may be added after one. */
const callersCalls = new Set<unknown>(words(
  "function_call custom_tool_call local_shell_call shell_call apply_patch_call computer_call",
  "mcp_approval_request tool_search_call",
));

/** Whether an item asks the caller to run a tool. */
export function isCallersCall({ type }: JsonObject): boolean {
  return callersCalls.has(type);
}

/** The prefix of an item's id, by its type; of other types, `item_`. */
const idPrefixes = new Map<unknown, string>(Object.entries({
  message: "msg_",
  reasoning: "rs_",
  function_call: "fc_",
  custom_tool_call: "ctc_",
  web_search_call: "ws_",
}));

/** An id for an item whose upstream gives none. `unique` names its response. */
export function itemId(type: Json | undefined, unique: string, index: number): string {
  return `${idPrefixes.get(type) ?? "item_"}${unique}_${index}`;
}

/**
 * An item with what clients rely on: the same object where it lacks nothing; null for what is no
 * item. `id` is for one without an id.
 */
export function normalizeItem(
  sent: Json | undefined,
  id: (type: string) => string,
): JsonObject | null {
  if (!isObject(sent)) return null;
  const type = typeof sent.type === "string" ? sent.type : "content" in sent ? "message" : null;
  if (type === null) return null;
  const hasId = typeof sent.id === "string" && sent.id !== "";
  const item = hasId && sent.type === type
    ? sent
    : { ...sent, type, id: hasId ? sent.id ?? "" : id(type) };
  switch (type) {
    case "message":
      return normalizeMessage(item);
    case "function_call":
    case "custom_tool_call":
      return normalizeCall(item, type === "function_call" ? "arguments" : "input");
    case "reasoning":
      return Array.isArray(item.summary) ? item : { ...item, summary: [] };
    default:
      return item;
  }
}

function normalizeMessage(item: JsonObject): JsonObject {
  const { content, role, status } = item;
  const sent = Array.isArray(content) ? content : content ? [content] : [];
  const parts = sent.flatMap((part) => normalizePart(part) ?? []);
  const isSame = parts.length === sent.length && parts.every((part, at) => part === sent[at]);
  const isWhole = isSame && sent === content && typeof role === "string" &&
    typeof status === "string";
  if (isWhole) return item;
  return {
    ...item,
    role: typeof role === "string" ? role : "assistant",
    status: typeof status === "string" ? status : "completed",
    content: parts,
  };
}

/** A content part of a message: annotations must be a list, and a text a string. */
export function normalizePart(part: Json | undefined): JsonObject | null {
  if (typeof part === "string") return { type: "output_text", text: part, annotations: [] };
  if (!isObject(part)) return null;
  const { type = "output_text", text, annotations } = part;
  if (type !== "output_text" && type !== "text") return part;
  const isWhole = part.type === "output_text" && typeof text === "string" &&
    Array.isArray(annotations);
  if (isWhole) return part;
  return {
    ...part,
    type: "output_text",
    text: typeof text === "string" ? text : "",
    annotations: Array.isArray(annotations) ? annotations : [],
  };
}

function normalizeCall(item: JsonObject, field: "arguments" | "input"): JsonObject {
  const { call_id: callId, [field]: written } = item;
  const isWhole = typeof callId === "string" && typeof written === "string";
  if (isWhole) return item;
  const text = written === undefined || written === null ? "" : JSON.stringify(written);
  return {
    ...item,
    call_id: typeof callId === "string" ? callId : item.id ?? "",
    [field]: typeof written === "string" ? written : text,
  };
}

/**
 * Members that no model wrote: ids, and what tools at the provider returned, which is input. Nobody
 * can read what is encrypted, or knows the tokens of an image by its bytes.
 */
const notWritten = new Set(words(
  "type id status role call_id phase annotations logprobs encrypted_content result output outputs",
  "results tools container_id server_label namespace created_by agent error acknowledged_safety_checks",
  "pending_safety_checks approval_request_id environment",
));

/**
 * Yields the texts that the model wrote in an item, by the place of each: `content.0`, `summary.0`,
 * `arguments`. Deltas of a stream have the same places.
 */
export function* writtenTexts(item: JsonObject): Generator<[place: string, text: string]> {
  for (const [name, value] of Object.entries(item)) {
    if (notWritten.has(name)) continue;
    if (typeof value === "string") yield [name, value];
    else if (Array.isArray(value)) {
      for (const [at, part] of value.entries()) yield [`${name}.${at}`, writtenIn(part)];
    } else if (isObject(value)) yield [name, writtenIn(value)];
  }
}

function writtenIn(value: Json): string {
  if (typeof value === "string") return value;
  if (!isObject(value)) return [...textsIn(value)].join("");
  let text = "";
  for (const [name, member] of Object.entries(value)) {
    if (notWritten.has(name) || name === "image_url" || name === "data") continue;
    text += typeof member === "string" ? member : [...textsIn(member)].join("");
  }
  return text;
}

/** The URLs of images that the model made in a message; "" for one without a URL. */
export function imagesIn({ type, content }: JsonObject): readonly string[] {
  if (type !== "message" || !Array.isArray(content)) return [];
  return content.flatMap((part) => {
    if (!isObject(part) || !plainText(part.type).includes("image")) return [];
    const url = isObject(part.image_url) ? part.image_url.url : part.image_url ?? part.url;
    return typeof url === "string" ? url : "";
  });
}
