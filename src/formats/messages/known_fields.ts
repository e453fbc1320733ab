import { ApiError, badRequest } from "../../base/errors.ts";
import { isObject, type JsonObject, plainText } from "../../base/json.ts";
import type { FieldPolicy } from "../../inference/model_request.ts";
import { requireKnown, words } from "../openai/known_fields.ts";
import { requireNoStoredFields, requireNothingStored } from "../openai/stored_things.ts";
import { blocksOf, messagesIn } from "./content.ts";
import { isPlainTool } from "./tools.ts";

/**
 * Members of a request for a message: https://platform.claude.com/docs/en/api/messages without
 * those that reach what an upstream keeps (`thread`), another model (`fallbacks`) or another
 * account (`billing_policy`, `workspace_id`, `user_profile_id`, `fallback_credit_token`).
 */
const messageRequestFields = new Set(words(
  "model max_tokens messages system tools tool_choice thinking output_config output_format",
  "stop_sequences stream metadata temperature top_p top_k service_tier speed inference_geo",
  "container cache_control context_management mcp_servers compaction diagnostics",
));

const messageFields = new Set(["role", "content"]);

/** Members of a tool that the request defines. */
const toolFields = new Set(words(
  "name description input_schema type cache_control strict eager_input_streaming defer_loading",
  "allowed_callers input_examples",
));

const outputFields = new Set(["effort", "format", "task_budget"]);

/**
 * Throws 400 for a `thread`, which an upstream keeps. By its details, Anthropic's SDK goes on
 * without one.
 */
function requireNoThread({ thread }: JsonObject, allowed: readonly string[]): void {
  if (thread === undefined || thread === null || allowed.includes("thread")) return;
  throw new ApiError(400, {
    message: "'thread' is not supported here: send the conversation whole.",
    code: "unsupported_parameter",
    param: "thread",
    details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
}

/**
 * Throws 400 for an unknown member of a request for a message, where those are refused, and for a
 * thread.
 */
export function requireKnownMessageFields(body: JsonObject, policy: FieldPolicy): void {
  requireNoThread(body, policy.allowed);
  if (policy.unknown === "pass") return;
  requireKnown(body, messageRequestFields, { policy, at: "" });
  for (const [index, message] of messagesIn(body.messages).entries()) {
    requireKnown(message, messageFields, { policy, at: `messages.${index}.` });
  }
  if (isObject(body.output_config)) {
    requireKnown(body.output_config, outputFields, { policy, at: "output_config." });
  }
  if (!Array.isArray(body.tools)) return;
  for (const [index, tool] of body.tools.entries()) {
    // Tools that have a type of their own have members of their own.
    if (!isObject(tool) || !isPlainTool(tool)) continue;
    requireKnown(tool, toolFields, { policy, at: `tools.${index}.` });
  }
}

/** Blocks of earlier responses: their files are not read again. */
const earlierBlocks = /_(output|result)$/;

/**
 * Throws 400 for fields and blocks that refer to what the upstream keeps, for all users of its key,
 * and for tools that come in messages, unless the project allows them.
 */
export function requireOwnContent(body: JsonObject, allowed: readonly string[]): void {
  requireNoStoredFields(body, allowed, ["diagnostics"]);
  for (const [index, tool] of Array.isArray(body.tools) ? body.tools.entries() : []) {
    if (!isPlainTool(tool) && isObject(tool)) {
      requireNothingStored(tool, { at: `tools.${index}`, allowed });
    }
  }
  for (const [index, message] of messagesIn(body.messages).entries()) {
    requireNothingStored(message, { at: `messages.${index}`, allowed }, messageFields);
  }
  for (const { block, param } of blocksOf(body)) {
    const { type, source, file_id: file } = block;
    if (isObject(source)) {
      const { content: _blocks, ...members } = source;
      requireNothingStored(members, { at: `${param}.source`, allowed, param });
    }
    if (file !== undefined && !earlierBlocks.test(plainText(type))) {
      requireNothingStored({ file_id: file }, { at: param, allowed, param });
    }
    if (type === "tool_addition" && !allowed.includes("tool_addition")) {
      throw badRequest(
        param,
        `'${param}' adds a tool, which is not supported here: name all tools in 'tools'.`,
        "unsupported_parameter",
      );
    }
  }
}
