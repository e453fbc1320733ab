import { ApiError, badRequest } from "../../base/errors.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { FieldPolicy } from "../../inference/model_request.ts";
import { isSet } from "../openai/fields.ts";
import { harmlessFields, requireKnown, words } from "../openai/known_fields.ts";
import { requireNoStoredFields, requireNothingStored } from "../openai/stored_things.ts";
import { inputItems, isMediaPart, partsOf } from "./input_items.ts";

/**
 * Members of a request: https://platform.openai.com/docs/api-reference/responses/create with
 * sampling and reasoning of other servers.
 */
const responsesFields = new Set([
  ...words(
    "model input instructions user stream stream_options max_output_tokens store include metadata",
    "previous_response_id conversation background tools tool_choice max_tool_calls reasoning text",
    "parallel_tool_calls truncation context_management service_tier prompt prompt_cache_key",
    "prompt_cache_retention prompt_cache_options safety_identifier moderation image",
    "access_programs top_logprobs temperature top_p client_metadata",
  ),
  ...words("frequency_penalty presence_penalty seed stop chat_template_kwargs thinking"),
  ...harmlessFields,
]);

/** Throws 400 for an unknown member, where the project refuses those, and for refused ones. */
export function requireServedFields(body: JsonObject, policy: FieldPolicy): void {
  if (policy.unknown === "refuse") requireKnown(body, responsesFields, { policy, at: "" });
  if (body.background === true) {
    throw unsupported("background", "a response has to be charged while it is made");
  }
  requireNoConversation(body);
  if (isSet(body.prompt) && !policy.allowed.includes("prompt")) {
    throw unsupported("prompt", "the text of a stored prompt cannot be priced");
  }
  requireNoCompaction(body, policy);
  const { allowed } = policy;
  // The pipeline looks up what else refers to earlier responses.
  requireNoStoredFields(body, allowed, ["previous_response_id"]);
  if (isObject(body.prompt) && isObject(body.prompt.variables)) {
    requireNothingStored(body.prompt.variables, { at: "prompt.variables", allowed });
  }
  for (const [index, item] of inputItems(body).entries()) {
    const { file_id = null, file_ids = null } = item;
    requireNothingStored({ file_id, file_ids }, { at: `input.${index}`, allowed });
    for (const { field, part } of partsOf(item)) {
      if (isMediaPart(part)) {
        requireNothingStored(part, { at: `input.${index}.${field}`, allowed });
      }
    }
  }
}

function requireNoConversation({ conversation, previous_response_id: previous }: JsonObject): void {
  if (!isSet(conversation)) return;
  if (isSet(previous)) {
    throw badRequest(
      "conversation",
      "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Give only one.",
      "mutually_exclusive_parameters",
    );
  }
  const id = isObject(conversation) ? conversation.id : conversation;
  if (typeof id !== "string") {
    const param = isObject(conversation) ? "conversation.id" : "conversation";
    throw badRequest(param, `'${param}' must be a string.`, "invalid_type");
  }
  throw new ApiError(404, {
    message: `Conversation with id '${id.slice(0, 128)}' not found.`,
    param: "conversation",
    code: "not_found",
  });
}

/**
 * Compacting on the way writes a summary besides the response, which the output bound does not
 * cover. A `compaction_trigger` in the input asks for the summary alone, as the response.
 */
function requireNoCompaction(body: JsonObject, { allowed }: FieldPolicy): void {
  const { context_management: management } = body;
  if (allowed.includes("context_management")) return;
  if (isSet(management) && !(Array.isArray(management) && management.length === 0)) {
    const why = "a compaction may cost more than what is set aside for the response";
    throw unsupported("context_management", why);
  }
}

function unsupported(param: string, why: string) {
  return badRequest(
    param,
    `'${param}' is not supported here: ${why}.`,
    "unsupported_parameter",
  );
}
