import { badRequest } from "../../base/errors.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { FieldPolicy } from "../../inference/format.ts";
import { requireKnown, words } from "../openai/known_fields.ts";
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

/** Throws 400 for an unknown member of a request for a message, where those are refused. */
export function requireKnownMessageFields(body: JsonObject, policy: FieldPolicy): void {
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

/**
 * Throws 400 for blocks that refer to files, which all users of an upstream's key share, and for
 * tools that come in messages, unless the project allows them.
 */
export function requireOwnContent(body: JsonObject, allowed: readonly string[]): void {
  for (const { block: { type, source, file_id: uploaded }, param } of blocksOf(body)) {
    // An earlier response's own files, in results of tools, are not read again.
    const file = isObject(source)
      ? source.file_id
      : type === "container_upload"
      ? uploaded
      : undefined;
    if (file !== undefined && !allowed.includes("file_id")) {
      throw badRequest(param, `'${param}' refers to an unknown file.`, "file_not_found");
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
