import { isObject, type JsonObject, plainText } from "../../../base/json.ts";
import { isBlocked } from "../../openai/choice_end.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";
import { reasoningFields } from "../chat_reasoning.ts";

/** The texts that a model wrote in a chat message, or in a delta of one. */
interface WrittenText {
  thinking: string;
  /** The field that has the thinking; empty where that is a part of the content. */
  thinkingField: string;
  text: string;
  /** Whether the text is, or ends with, a refusal. */
  refuses: boolean;
}

/**
 * The texts of a message or a delta, which is mended. Reasoning has two names, and one for what was
 * a part of the content. A refusal is text for a caller of messages.
 */
export function readWritten(message: JsonObject): WrittenText {
  const { content, refusal } = message;
  const written = { thinking: "", thinkingField: "", text: "", refuses: false };
  for (const field of reasoningFields) {
    const thinking = message[field];
    if (typeof thinking !== "string" || thinking === "") continue;
    Object.assign(written, { thinking, thinkingField: field });
    break;
  }
  if (written.thinking === "" && typeof message.thinking === "string") {
    written.thinking = message.thinking;
  }
  if (typeof content === "string") written.text = content;
  if (typeof refusal === "string" && refusal !== "") {
    written.refuses = true;
    if (written.text === "") written.text = refusal;
  }
  return written;
}

/** Thinking that goes back to the chat server that wrote it. */
interface OwnThinking {
  field: string;
  text: string;
}

/**
 * The thinking of a block that a chat server has written; null for other thinking. The block's
 * signature is the name of its field, and holds the text of a block that shows none. Anthropic's
 * own signatures differ, and no chat server takes what they sign.
 */
export function ownThinking({ type, thinking, signature }: JsonObject): OwnThinking | null {
  if (type !== "thinking" || typeof signature !== "string") return null;
  for (const field of reasoningFields) {
    if (signature === field) return { field, text: plainText(thinking ?? "") };
    if (signature.startsWith(`${field}:`)) {
      return { field, text: signature.slice(field.length + 1) };
    }
  }
  return null;
}

/** The name and the arguments in a piece of a call, which is mended. */
export function readCall({ function: called }: JsonObject): { name: string; text: string } {
  const { name, arguments: text } = isObject(called) ? called : {};
  return { name: plainText(name ?? ""), text: plainText(text ?? "") };
}

/**
 * How a response has its thinking as blocks: `shown` to a caller who asks, as Anthropic does it.
 * Others often read the first block as the text, but many servers want the thinking back that came
 * before a call of a tool: where the caller has tools, it stands `beside-calls`, or `hidden` in a
 * signature beside them where the caller asks for no text of it.
 */
export type ThinkingForm = "shown" | "beside-calls" | "hidden" | "none";

/** The form of thinking that a request asks for. */
export function thinkingForm({ body: { thinking, tools } }: ModelRequest): ThinkingForm {
  const { type = "disabled", display } = isObject(thinking) ? thinking : {};
  const asks = type !== "disabled";
  if (asks && display !== "omitted") return "shown";
  if (!Array.isArray(tools) || tools.length === 0) return "none";
  return asks ? "hidden" : "beside-calls";
}

/** The text and the signature of a block of thinking. */
export function thinkingBlock(form: ThinkingForm, { field, text }: OwnThinking): {
  thinking: string;
  signature: string;
} {
  return form === "hidden"
    ? { thinking: "", signature: `${field}:${text}` }
    : { thinking: text, signature: field };
}

/** How a response ended, as `message_delta` and the whole message say it. */
interface MessageStop {
  stop_reason: string;
  stop_sequence: string | null;
}

/** Which stop sequence ended a response is known only from vLLM, in `stop_reason`. */
export function toMessageStop(
  choice: JsonObject,
  { calls, refuses, request }: { calls: boolean; refuses: boolean; request: ModelRequest },
): MessageStop {
  const { finish_reason: reason, stop_reason: matched } = choice;
  const stop = (stop_reason: string) => ({ stop_reason, stop_sequence: null });
  if (reason === "length") return stop("max_tokens");
  if (refuses || isBlocked(choice)) return stop("refusal");
  if (calls) return stop("tool_use");
  const { stop_sequences: stops } = request.body;
  if (typeof matched === "string" && Array.isArray(stops) && stops.includes(matched)) {
    return { stop_reason: "stop_sequence", stop_sequence: matched };
  }
  return stop("end_turn");
}
