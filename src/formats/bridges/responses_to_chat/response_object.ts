import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { ModelRequest, ResponseHead } from "../../../inference/format.ts";

/**
 * A response before it has any output: what identifies it, and what it repeats of its request.
 * Nothing of it is kept, so that it says `store: false`.
 */
export function responseObject(
  { body }: ModelRequest,
  { id, created, model }: ResponseHead,
): JsonObject {
  const asked = (name: string, otherwise: Json = null): Json => body[name] ?? otherwise;
  const { text, reasoning } = body;
  return {
    id,
    object: "response",
    created_at: created,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: asked("instructions"),
    max_output_tokens: asked("max_output_tokens"),
    max_tool_calls: asked("max_tool_calls"),
    metadata: asked("metadata", {}),
    model,
    output: [],
    parallel_tool_calls: asked("parallel_tool_calls", true),
    previous_response_id: null,
    prompt_cache_key: asked("prompt_cache_key"),
    reasoning: { effort: null, summary: null, ...(isObject(reasoning) ? reasoning : {}) },
    safety_identifier: asked("safety_identifier"),
    service_tier: null,
    store: false,
    temperature: asked("temperature"),
    text: { format: { type: "text" }, ...(isObject(text) ? text : {}) },
    tool_choice: asked("tool_choice", "auto"),
    tools: asked("tools", []),
    top_logprobs: asked("top_logprobs", 0),
    top_p: asked("top_p"),
    truncation: "disabled",
    usage: null,
    user: asked("user"),
    access_programs: null,
  };
}
