import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** Everything a model wrote in a message or a delta: text, reasoning, refusals, tool calls. */
export function* outputTexts(message: Json | undefined): Generator<string> {
  if (!isObject(message)) return;
  // Some servers send the same reasoning under both names.
  const { reasoning_content } = message;
  const isNamed = typeof reasoning_content === "string" && reasoning_content !== "";
  yield* partTexts(message.content);
  yield* partTexts(isNamed ? reasoning_content : message.reasoning);
  yield* partTexts(message.refusal);
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [message.function_call];
  for (const call of calls) if (isObject(call)) yield* callTexts(call);
}

/** A text, or the texts of content parts. Mistral's reasoning is parts within a part. */
function* partTexts(value: Json | undefined): Generator<string> {
  if (typeof value === "string") yield value;
  if (!Array.isArray(value)) return;
  for (const part of value) {
    if (isObject(part)) yield* partTexts(part.type === "thinking" ? part.thinking : part.text);
  }
}

function* callTexts(call: JsonObject): Generator<string> {
  const { function: called, custom } = call;
  const written = isObject(called) ? called : isObject(custom) ? custom : call;
  for (const field of ["name", "arguments", "input"]) {
    const value = written[field];
    if (typeof value === "string") yield value;
  }
}
