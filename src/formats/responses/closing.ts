import { isObject, type JsonObject } from "../../base/json.ts";
import { type BalanceNotice, noticeFor } from "../../inference/notice.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import { isCallersCall } from "./output_items.ts";

/** How a response ends for its caller. */
export interface ResponseClosing {
  /** The notice for the reader about their balance; "" where none is due. */
  notice: string;
  /**
   * The balance cut it, and the notice says so: it is complete, since some clients show nothing of
   * a response that is not.
   */
  isCompleted: boolean;
}

/** The closing of a response; `isCut` tells whether its output bound ended it. */
export function closingOf(
  { output, isCut }: { output: readonly JsonObject[]; isCut: boolean },
  { notice, request, balance }: { notice: BalanceNotice; request: ModelRequest; balance: string },
): ResponseClosing {
  const reason = output.some(isCallersCall) ? "tool_calls" : isCut ? "length" : "stop";
  const text = noticeFor(reason, notice)?.(balance) ?? "";
  const isCompleted = reason === "length" && notice.atLength !== null && text !== "" &&
    !request.structured;
  return { notice: text, isCompleted };
}

/** Members of a response that is complete for its caller. */
export const completedMembers: JsonObject = { status: "completed", incomplete_details: null };

/** The output with a closing: its notice at the end of the last text, else in `own`, a message. */
export function withClosing(
  output: readonly JsonObject[],
  { notice, isCompleted }: ResponseClosing,
  own: (text: string) => JsonObject,
): readonly JsonObject[] {
  if (notice === "") return output;
  const last = output.at(-1);
  if (!last || !endsInText(last)) return [...output, own(notice)];
  return [...output.slice(0, -1), withText(last, notice, isCompleted)];
}

/** Whether an item is a message whose last part is a text. */
export function endsInText({ type, content }: JsonObject): boolean {
  if (type !== "message" || !Array.isArray(content)) return false;
  const last = content.at(-1);
  return isObject(last) && last.type === "output_text";
}

/** A message with a text at the end of its last part. */
export function withText(item: JsonObject, text: string, isCompleted: boolean): JsonObject {
  const content = Array.isArray(item.content) ? item.content : [];
  const last = content.at(-1);
  const part = isObject(last) ? withPartText(last, text) : { type: "output_text", text };
  const status = isCompleted ? { status: "completed" } : {};
  return { ...item, ...status, content: [...content.slice(0, -1), part] };
}

/** A text part with a text at its end. */
export function withPartText(part: JsonObject, text: string): JsonObject {
  return { ...part, text: (typeof part.text === "string" ? part.text : "") + text };
}

/** A message of ours with a notice; its id is one that never reaches the upstream. */
export function ownMessage(id: string, text: string): JsonObject {
  const content = [{ type: "output_text", text: text.trimStart(), annotations: [] }];
  return { id, type: "message", role: "assistant", status: "completed", content };
}
