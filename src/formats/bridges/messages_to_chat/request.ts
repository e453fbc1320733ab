import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";
import type { Dialect } from "../../../upstreams/dialect.ts";
import {
  fieldRules,
  isEmpty,
  isOneOf,
  notCarried,
  requireCarried,
  requireList,
  requireObjectIn,
  requireString,
} from "../carried_fields.ts";
import { toChatMessages } from "./turns.ts";

/**
 * Fields of Anthropic's messages. Dropped are: `thinking`, since a chat model decides by itself
 * whether it thinks and no field for that is common to chat servers; `metadata` and
 * `user_profile_id`, which no model reads; `cache_control` and `diagnostics`, which concern
 * Anthropic's cache; `service_tier`, whose two values leave the tier to the provider.
 */
const bodyRules = fieldRules({
  carried: "model messages system max_tokens stream tools tool_choice stop_sequences temperature " +
    "top_p top_k output_config output_format context_management",
  dropped: "thinking metadata user_profile_id cache_control diagnostics",
  unless: {
    service_tier: isOneOf("auto", "standard_only"),
    speed: isOneOf("standard"),
    inference_geo: isOneOf("global"),
    mcp_servers: isEmpty,
  },
});

/** How much effort: chat has the same words in `reasoning_effort`. How: a schema. */
const outputRules = fieldRules({ carried: "effort format" });
const schemaRules = fieldRules({ carried: "type schema" });

/** `eager_input_streaming` decides only how a stream is cut. */
const toolRules = fieldRules({
  carried: "type name description input_schema strict",
  dropped: "cache_control eager_input_streaming",
  unless: {
    defer_loading: isOneOf(false),
    input_examples: isEmpty,
    allowed_callers: (callers) => Array.isArray(callers) && callers.every(isOneOf("direct")),
  },
});
const choiceRules = fieldRules({ carried: "type name disable_parallel_tool_use" });

/**
 * The body for an upstream that speaks chat completions, as JSON text. Throws 400 for what chat
 * cannot carry.
 */
export function writeBodyAsChat(request: ModelRequest, cap: number, dialect: Dialect): string {
  const { body, stream } = request;
  requireCarried(body, bodyRules);
  requireDroppableEdits(body.context_management);
  // Such a request only fills Anthropic's cache.
  if (body.max_tokens === 0) throw notCarried("max_tokens");
  const { effort, format } = outputOf(body);
  const tools = requireList(body.tools, "tools").map(toChatTool);
  const stops = requireList(body.stop_sequences, "stop_sequences");
  return JSON.stringify({
    model: body.model,
    messages: toChatMessages(body, dialect.prefill),
    ...(asksToContinue(body, dialect) ? continued : {}),
    stream: stream ? true : undefined,
    stream_options: stream && dialect.requestsUsage ? { include_usage: true } : undefined,
    [dialect.maxTokensField]: Math.min(cap, dialect.maxTokens, dialect.contextLeft),
    tools: tools.length > 0 ? tools : undefined,
    ...(tools.length > 0 ? toolChoiceOf(body) : {}),
    stop: stops.length > 0 ? stops : undefined,
    temperature: body.temperature ?? undefined,
    top_p: body.top_p ?? undefined,
    top_k: body.top_k ?? undefined,
    reasoning_effort: effort ?? undefined,
    response_format: isObject(format) ? responseFormatOf(format) : undefined,
  });
}

const continued = { continue_final_message: true, add_generation_prompt: false };

function asksToContinue({ messages }: JsonObject, { prefill }: Dialect): boolean {
  const last = Array.isArray(messages) ? messages.at(-1) : null;
  return prefill === "continue_final_message" && isObject(last) && last.role === "assistant";
}

/**
 * Thinking of earlier turns is passed on only beside calls, where servers demand it: an edit that
 * clears it changes nothing. Other edits change what the model reads.
 */
function requireDroppableEdits(management: Json | undefined): void {
  if (management === undefined || management === null) return;
  const at = "context_management";
  const { edits, ...rest } = requireObjectIn(management, at);
  requireCarried(rest, new Map(), `${at}.`);
  for (const [index, edit] of requireList(edits, `${at}.edits`).entries()) {
    if (isObject(edit) && edit.type === "clear_thinking_20251015") continue;
    throw notCarried(`${at}.edits.${index}`);
  }
}

/** `output_config`, and the name that its format had before. */
function outputOf(body: JsonObject): { effort: Json | undefined; format: Json | undefined } {
  const { output_config: config, output_format: earlier } = body;
  const output = config === undefined || config === null
    ? {}
    : requireObjectIn(config, "output_config");
  requireCarried(output, outputRules, "output_config.");
  const format = output.format ?? earlier;
  if (format !== undefined && format !== null) requireObjectIn(format, "output_config.format");
  return { effort: output.effort, format };
}

/** Anthropic guarantees the schema, and OpenAI does so where it is `strict`. */
function responseFormatOf(format: JsonObject): JsonObject {
  const at = "output_config.format";
  requireCarried(format, schemaRules, `${at}.`);
  if (format.type !== "json_schema") throw notCarried(`${at}.type`);
  const schema = requireObjectIn(format.schema, `${at}.schema`);
  return { type: "json_schema", json_schema: { name: "response", schema, strict: true } };
}

/** Throws 400 for a tool of Anthropic's own, whose schema only its models know. */
function toChatTool(tool: Json, index: number): JsonObject {
  const at = `tools.${index}`;
  const sent = requireObjectIn(tool, at);
  const { type, name, description, input_schema: parameters, strict } = sent;
  if (typeof type === "string" && type !== "custom") throw notCarried(`${at}.type`);
  requireCarried(sent, toolRules, `${at}.`);
  return {
    type: "function",
    function: {
      name: requireString(name, `${at}.name`),
      ...(typeof description === "string" ? { description } : {}),
      parameters: requireObjectIn(parameters, `${at}.input_schema`),
      ...(strict === true ? { strict } : {}),
    },
  };
}

function toolChoiceOf({ tool_choice: choice }: JsonObject): JsonObject {
  if (choice === undefined || choice === null) return {};
  const at = "tool_choice";
  const sent = requireObjectIn(choice, at);
  requireCarried(sent, choiceRules, `${at}.`);
  const alone = sent.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {};
  switch (sent.type) {
    case "auto":
    case "none":
      return { tool_choice: sent.type, ...alone };
    case "any":
      return { tool_choice: "required", ...alone };
    case "tool": {
      const name = requireString(sent.name, `${at}.name`);
      return { tool_choice: { type: "function", function: { name } }, ...alone };
    }
    default:
      throw badRequest(`${at}.type`, `'${at}.type' must be auto, any, tool or none.`);
  }
}
