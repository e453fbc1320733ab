import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { ChatReasoning } from "./reasoning.ts";
import type { ResponseWriter } from "./response_writer.ts";

/**
 * Writes what a message says, or a delta of one, which is mended: reasoning, text, refusals,
 * citations and calls. `logprobs` are those of its choice.
 */
export function writeMessage(
  writer: ResponseWriter,
  message: JsonObject,
  logprobs: Json | undefined,
): void {
  const { content, refusal, annotations, tool_calls: calls } = message;
  const reasoning = reasoningOf(message);
  if (reasoning) writer.addReasoning(reasoning);
  const { thinking_blocks: blocks } = message;
  if (Array.isArray(blocks) && blocks.length > 0) writer.addSignedThinking(blocks);
  if (typeof content === "string") writer.addText(content, readLogprobs(logprobs));
  if (typeof refusal === "string") writer.addRefusal(refusal);
  for (const each of Array.isArray(annotations) ? annotations : []) {
    const citation = citationOf(each);
    if (citation) writer.addAnnotation(citation);
  }
  for (const call of Array.isArray(calls) ? calls : []) if (isObject(call)) writer.addCall(call);
}

/** Some servers send the same reasoning under both names. */
function reasoningOf(
  { reasoning_content, reasoning, thinking }: JsonObject,
): ChatReasoning | null {
  if (typeof reasoning_content === "string" && reasoning_content !== "") {
    return { field: "reasoning_content", text: reasoning_content };
  }
  if (typeof reasoning === "string" && reasoning !== "") {
    return { field: "reasoning", text: reasoning };
  }
  return typeof thinking === "string" ? { field: null, text: thinking } : null;
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
