import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";

/** The texts that a model wrote in a chat message, or in a delta of one. */
interface WrittenText {
  thinking: string;
  /** The field that has the thinking; empty where that is a part of the content. */
  thinkingField: string;
  text: string;
  /** Whether the text is, or ends with, a refusal. */
  refuses: boolean;
}

/** Names of the field in which chat servers send reasoning, and get it back. */
const thinkingFields = ["reasoning_content", "reasoning"];

/**
 * The texts of a message or a delta. Reasoning has two names, and Mistral's is a part of the
 * content. A refusal is text for a caller of messages.
 */
export function readWritten(message: JsonObject): WrittenText {
  const { content, refusal } = message;
  const written = { thinking: "", thinkingField: "", text: "", refuses: false };
  for (const field of thinkingFields) {
    const thinking = message[field];
    if (typeof thinking !== "string" || thinking === "") continue;
    Object.assign(written, { thinking, thinkingField: field });
    break;
  }
  if (typeof content === "string") written.text = content;
  else if (Array.isArray(content)) addParts(written, content);
  if (typeof refusal === "string" && refusal !== "") {
    written.refuses = true;
    if (written.text === "") written.text = refusal;
  }
  return written;
}

/**
 * The field in which a block of thinking goes back to a chat server; null for thinking that none
 * has sent. The block's signature names it: Anthropic's own are longer, and no chat server takes
 * what they sign.
 */
export function thinkingFieldOf({ type, signature }: JsonObject): string | null {
  if (type !== "thinking" || typeof signature !== "string") return null;
  return thinkingFields.includes(signature) ? signature : null;
}

function addParts(written: WrittenText, parts: readonly Json[]): void {
  for (const part of parts) {
    if (!isObject(part)) continue;
    if (part.type === "thinking") written.thinking += textIn(part.thinking);
    else if (typeof part.text === "string") written.text += part.text;
  }
}

function textIn(value: Json | undefined): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return "";
  return value.map((part) => isObject(part) ? textIn(part.text) : "").join("");
}

/** The name and the arguments of a call; arguments that are an object become text. */
export function readCall({ function: called }: JsonObject): { name: string; text: string } {
  const { name, arguments: given } = isObject(called) ? called : {};
  const text = isObject(given) ? JSON.stringify(given) : given;
  return {
    name: typeof name === "string" ? name : "",
    text: typeof text === "string" ? text : "",
  };
}

/**
 * Whether the response has its thinking as blocks. Anthropic gives them only to a caller who asks:
 * others often read the first block as the text.
 */
export function showsThinking({ body: { thinking } }: ModelRequest): boolean {
  return isObject(thinking) && thinking.type !== "disabled" && thinking.display !== "omitted";
}

/** How a response ended, as `message_delta` and the whole message say it. */
interface MessageStop {
  stop_reason: string;
  stop_sequence: string | null;
}

/** Which stop sequence ended a response is known only from vLLM, in `stop_reason`. */
export function toMessageStop(
  { finish_reason: reason, stop_reason: matched }: JsonObject,
  { calls, refuses, request }: { calls: boolean; refuses: boolean; request: ModelRequest },
): MessageStop {
  const stop = (stop_reason: string) => ({ stop_reason, stop_sequence: null });
  if (reason === "length") return stop("max_tokens");
  if (reason === "content_filter" || refuses) return stop("refusal");
  if (calls) return stop("tool_use");
  const { stop_sequences: stops } = request.body;
  if (typeof matched === "string" && Array.isArray(stops) && stops.includes(matched)) {
    return { stop_reason: "stop_sequence", stop_sequence: matched };
  }
  return stop("end_turn");
}
