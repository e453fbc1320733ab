import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { ResponseHead } from "../../inference/upstream_response.ts";
import { responseIdPrefix } from "./own_ids.ts";
import { itemId, normalizeItem } from "./output_items.ts";

/** Members that every response has, for upstreams that leave them out. */
function usualMembers({ body }: ModelRequest): JsonObject {
  const of = (name: string) => body[name] ?? null;
  return {
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: of("instructions"),
    max_output_tokens: of("max_output_tokens"),
    metadata: isObject(body.metadata) ? body.metadata : {},
    parallel_tool_calls: body.parallel_tool_calls !== false,
    previous_response_id: of("previous_response_id"),
    temperature: of("temperature"),
    text: isObject(body.text) ? body.text : { format: { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: Array.isArray(body.tools) ? body.tools : [],
    top_p: of("top_p"),
  };
}

/** A response with what clients rely on, added where its upstream leaves it out. */
export function normalizeObject(
  { usage: _charged, ...sent }: JsonObject,
  { request, head, output }: { request: ModelRequest; head: ResponseHead; output: JsonObject[] },
): JsonObject {
  const { status } = sent;
  const { id, created, model } = headOf(sent, head);
  const known = typeof status === "string" ? {} : { status: statusOf(sent) };
  return {
    ...usualMembers(request),
    ...sent,
    ...known,
    id,
    object: "response",
    created_at: created,
    model,
    output,
  };
}

/**
 * The id, time and model of a response: its own values where they are valid, else those of `head`.
 */
export function headOf(
  { id, created_at: created, model }: JsonObject,
  head: ResponseHead,
): ResponseHead {
  return {
    id: typeof id === "string" && id !== "" ? id : head.id,
    created: typeof created === "number" ? created : head.created,
    model: typeof model === "string" && model !== "" ? model : head.model,
  };
}

/** Members of a response that its output bound has cut. */
export const cutMembers: JsonObject = {
  status: "incomplete",
  incomplete_details: { reason: "max_output_tokens" },
};

function statusOf({ incomplete_details: details }: JsonObject): string {
  return isObject(details) ? "incomplete" : "completed";
}

/** Whether a response has what clients rely on at its beginning, and no output yet. */
export function isWholeStart(
  { id, object, created_at: created, model, output }: JsonObject,
): boolean {
  return typeof id === "string" && id !== "" && object === "response" &&
    typeof created === "number" && typeof model === "string" && Array.isArray(output) &&
    output.length === 0;
}

/** The valid items of a response. */
export function normalizeOutput(output: Json | undefined, head: ResponseHead): JsonObject[] {
  if (!Array.isArray(output)) return [];
  const unique = head.id.slice(responseIdPrefix.length);
  return output.map((item, index) => normalizeItem(item, (type) => itemId(type, unique, index)))
    .filter((item) => item !== null);
}

/** Whether the output bound has cut a response. */
export function isCutByBound({ status, incomplete_details: details }: JsonObject): boolean {
  return status === "incomplete" && isObject(details) && details.reason === "max_output_tokens";
}

/** Whether a response says that it failed. */
export function isFailed({ type, status, error }: JsonObject): boolean {
  return status === "failed" || type === "error" || Boolean(error);
}
