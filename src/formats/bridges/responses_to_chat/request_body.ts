import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";
import type { Dialect } from "../../../upstreams/dialect.ts";
import { harmlessFields, words } from "../../openai/known_fields.ts";
import { writeMessages } from "./messages.ts";
import { nothingKept, notInChat } from "./not_in_chat.ts";
import { writeTools } from "./tool_choice.ts";
import { readTools } from "./tools.ts";

/** Fields that mean the same in a chat request, and options that many chat servers know. */
const same = new Set([
  ...words("model temperature top_p service_tier user safety_identifier"),
  ...words("seed stop frequency_penalty presence_penalty logit_bias"),
  ...words("chat_template_kwargs thinking"),
  ...harmlessFields,
]);

/** Fields that are written in another form, by the functions of this folder. */
const translated = new Set(words(
  "input instructions tools tool_choice parallel_tool_calls max_output_tokens stream text reasoning",
  "include top_logprobs",
));

/** Fields that are left out, because the response is the same without them. */
const withoutEffect = new Set([
  // Labels and the life of what a provider keeps. Nothing is kept here, and the response says so.
  ...words("store metadata"),
  // How a provider finds its cached prompts. Strict chat servers refuse these fields.
  ...words("prompt_cache_key prompt_cache_retention prompt_cache_options"),
  // Bounds the calls of tools that run at a provider. Requests with such tools are refused.
  "max_tool_calls",
  // Whether a stream hides the length of its events.
  "stream_options",
  // What a client reports about itself.
  "client_metadata",
]);

/** Fields that chat cannot carry, and the values that ask for nothing. */
const refused = new Map<string, (value: Json) => boolean>(Object.entries({
  background: (value) => value === false,
  // A conversation that is too long is the upstream's error.
  truncation: (value) => value === "disabled" || value === "auto",
  context_management: (value) => Array.isArray(value) && value.length === 0,
}));

/** Fields that refer to what a provider keeps. */
const references = new Set(["previous_response_id", "conversation", "prompt"]);

/**
 * Values that `include` may have. All but log probabilities are about items that do not occur here.
 */
const includable = new Set<Json>([
  "reasoning.encrypted_content",
  "message.output_text.logprobs",
  "message.input_image.image_url",
  "web_search_call.results",
  "web_search_call.action.sources",
  "file_search_call.results",
  "code_interpreter_call.outputs",
  "computer_call_output.output.image_url",
]);

/**
 * A request of `/responses` as the body of a chat completion, with an output bound of `cap` tokens.
 * Throws 400 with the name of what chat cannot carry.
 */
export function writeChatBody(request: ModelRequest, cap: number, dialect: Dialect): string {
  const { body, stream } = request;
  const chat: JsonObject = { model: request.model };
  for (const [name, value] of Object.entries(body)) {
    if (value === null || translated.has(name) || withoutEffect.has(name)) continue;
    if (same.has(name)) chat[name] = value;
    else if (references.has(name)) throw nothingKept(name);
    else if (!refused.get(name)?.(value)) throw notInChat(name.slice(0, 64), "this field");
  }
  const table = readTools(body);
  chat.messages = writeMessages(body, table);
  Object.assign(
    chat,
    writeTools(body, table),
    textFields(body.text),
    reasoningFields(body.reasoning),
    logprobFields(body),
  );
  chat[dialect.maxTokensField] = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  if (stream) chat.stream = true;
  if (stream && dialect.requestsUsage) chat.stream_options = { include_usage: true };
  return JSON.stringify(chat);
}

/** The format of the text, and how long it should be where that is not the usual length. */
function textFields(text: Json | undefined): JsonObject {
  if (!isObject(text)) return {};
  const { format, verbosity } = text;
  const isUsual = verbosity === undefined || verbosity === null || verbosity === "medium";
  return { ...(isUsual ? {} : { verbosity }), ...formatFields(format) };
}

function formatFields(format: Json | undefined): JsonObject {
  if (format === undefined || format === null) return {};
  const { type, ...schema } = isObject(format) ? format : {};
  switch (type) {
    case "text":
      return {};
    case "json_object":
      return { response_format: { type } };
    case "json_schema":
      return { response_format: { type, json_schema: schema } };
    default:
      throw notInChat("text.format", "this format");
  }
}

/** A summary is how the reasoning is shown, which the response does with what there is. */
function reasoningFields(reasoning: Json | undefined): JsonObject {
  if (!isObject(reasoning)) return {};
  const { effort, mode } = reasoning;
  if (typeof mode === "string" && mode !== "standard") {
    throw notInChat("reasoning.mode", "this mode");
  }
  return effort === undefined || effort === null ? {} : { reasoning_effort: effort };
}

function logprobFields({ include, top_logprobs: top }: JsonObject): JsonObject {
  const wanted = Array.isArray(include) ? include : [];
  const unknown = wanted.findIndex((name) => !includable.has(name));
  if (unknown >= 0) throw notInChat(`include.${unknown}`, "what it asks for");
  if (top !== undefined && top !== null && typeof top !== "number") {
    throw badRequest("top_logprobs", "'top_logprobs' must be a number.");
  }
  if (top) return { logprobs: true, top_logprobs: top };
  return wanted.includes("message.output_text.logprobs") ? { logprobs: true } : {};
}
