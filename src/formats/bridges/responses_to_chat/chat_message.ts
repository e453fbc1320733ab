import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { ChatReasoning } from "./reasoning.ts";
import type { ResponseWriter } from "./response_writer.ts";

/**
 * Writes what a message says, or a delta of one: reasoning, text, refusals, citations and calls.
 * `logprobs` are those of its choice.
 */
export function writeMessage(
  writer: ResponseWriter,
  message: JsonObject,
  logprobs: Json | undefined,
): void {
  const { content, refusal, annotations, tool_calls: calls, function_call: legacy } = message;
  const reasoning = reasoningOf(message);
  if (reasoning) writer.addReasoning(reasoning);
  const { thinking_blocks: blocks } = message;
  if (Array.isArray(blocks) && blocks.length > 0) writer.addSignedThinking(blocks);
  writeContent(writer, content, readLogprobs(logprobs));
  if (typeof refusal === "string") writer.addRefusal(refusal);
  for (const each of Array.isArray(annotations) ? annotations : []) {
    const citation = citationOf(each);
    if (citation) writer.addAnnotation(citation);
  }
  for (const call of Array.isArray(calls) ? calls : []) writer.addCall(call);
  if (isObject(legacy)) writer.addCall({ index: legacyIndex, function: legacy });
}

/** The one call of a server that knows no others. */
const legacyIndex = -1;

/** Some servers send the same reasoning under both names. */
function reasoningOf({ reasoning_content, reasoning }: JsonObject): ChatReasoning | null {
  if (typeof reasoning_content === "string" && reasoning_content !== "") {
    return { field: "reasoning_content", text: reasoning_content };
  }
  return typeof reasoning === "string" ? { field: "reasoning", text: reasoning } : null;
}

/** A text, or parts. Mistral's reasoning is parts within a part. */
function writeContent(
  writer: ResponseWriter,
  content: Json | undefined,
  logprobs: readonly Json[],
): void {
  if (typeof content === "string") writer.addText(content, logprobs);
  if (!Array.isArray(content)) return;
  for (const part of content) {
    if (!isObject(part)) continue;
    if (typeof part.text === "string") writer.addText(part.text, []);
    if (typeof part.refusal === "string") writer.addRefusal(part.refusal);
    if (part.type !== "thinking") continue;
    for (const text of thoughtsIn(part.thinking)) writer.addReasoning({ field: null, text });
  }
}

function thoughtsIn(thinking: Json | undefined): string[] {
  if (typeof thinking === "string") return [thinking];
  const parts = Array.isArray(thinking) ? thinking.filter(isObject) : [];
  return parts.flatMap(({ text }) => (typeof text === "string" ? [text] : []));
}

/** Log probabilities have the same shape in both formats. */
function readLogprobs(logprobs: Json | undefined): Json[] {
  const content = isObject(logprobs) ? logprobs.content : null;
  if (!Array.isArray(content)) return [];
  return content.filter((each) =>
    isObject(each) && typeof each.token === "string" && typeof each.logprob === "number"
  ).map((each) => (isObject(each) ? { bytes: [], top_logprobs: [], ...each } : each));
}

/** A citation of a page, which in chat is within a member of its own. */
function citationOf(annotation: Json): JsonObject | null {
  const cited = isObject(annotation) ? annotation.url_citation : null;
  if (!isObject(cited) || typeof cited.url !== "string") return null;
  const { url, title, start_index, end_index } = cited;
  const at = (index: Json | undefined) => (typeof index === "number" ? index : 0);
  return {
    type: "url_citation",
    url,
    title: typeof title === "string" ? title : url,
    start_index: at(start_index),
    end_index: at(end_index),
  };
}
