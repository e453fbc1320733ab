import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";

/**
 * All members of a response that no upstream has written, besides what identifies it: what it
 * repeats of its request, and the usual values of the rest. The list is that of the specification
 * Open Responses: https://www.openresponses.org
 */
export function ownMembers({ body, continues }: ModelRequest): JsonObject {
  const asked = (name: string, otherwise: Json = null): Json => body[name] ?? otherwise;
  const { text, reasoning, metadata } = body;
  return {
    status: "completed",
    completed_at: null,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: asked("instructions"),
    max_output_tokens: asked("max_output_tokens"),
    max_tool_calls: asked("max_tool_calls"),
    metadata: isObject(metadata) ? metadata : {},
    parallel_tool_calls: asked("parallel_tool_calls", true),
    previous_response_id: continues ?? asked("previous_response_id"),
    prompt_cache_key: asked("prompt_cache_key"),
    reasoning: { effort: null, summary: null, ...(isObject(reasoning) ? reasoning : {}) },
    safety_identifier: asked("safety_identifier"),
    service_tier: "default",
    store: asked("store", true),
    temperature: asked("temperature", 1),
    text: { format: { type: "text" }, ...(isObject(text) ? text : {}) },
    tool_choice: asked("tool_choice", "auto"),
    tools: Array.isArray(body.tools) ? body.tools.map(wholeTool) : [],
    top_logprobs: asked("top_logprobs", 0),
    top_p: asked("top_p", 1),
    presence_penalty: asked("presence_penalty", 0),
    frequency_penalty: asked("frequency_penalty", 0),
    truncation: "disabled",
    user: asked("user"),
    access_programs: null,
  };
}

/** A function with all of its members. */
function wholeTool(tool: Json): Json {
  if (!isObject(tool) || tool.type !== "function") return tool;
  return { description: null, parameters: null, strict: null, ...tool };
}
