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
} from "../carried_fields.ts";
import { toInput } from "./input.ts";
import { writeResponsesTools } from "./tools.ts";

/** Fields that mean the same in both formats. */
const same = [
  ...["model", "temperature", "top_p", "top_logprobs", "service_tier", "user", "safety_identifier"],
  ...["metadata", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"],
];

/**
 * Fields of a chat request. Dropped are what the service itself decides or reports, what concerns
 * the storage of chats, and hints for other providers' caches. The others are refused unless their
 * value is the one that applies without them: responses know no stop sequences, no seed and no
 * penalties.
 */
const bodyRules = fieldRules({
  carried: `${same.join(" ")} messages max_tokens max_completion_tokens n_predict stream tools ` +
    "tool_choice parallel_tool_calls functions function_call response_format reasoning_effort " +
    "verbosity logprobs",
  dropped: "stream_options usage store cache_control max_tool_calls tool_stream",
  unless: {
    n: isOneOf(1),
    stop: (value) => value === "" || isEmpty(value),
    frequency_penalty: isOneOf(0),
    presence_penalty: isOneOf(0),
    logit_bias: isEmpty,
    modalities: (list) => Array.isArray(list) && list.length === 1 && list[0] === "text",
    speed: isOneOf("standard"),
  },
});
const formatRules = fieldRules({ carried: "type json_schema" });
const schemaRules = fieldRules({ carried: "name description schema strict" });

/**
 * The body for an upstream that speaks OpenAI's responses, as JSON text. It is asked to keep
 * nothing, since no caller of a chat could name what it keeps. Throws 400 for what responses cannot
 * carry.
 */
export function writeBodyAsResponses(request: ModelRequest, cap: number, dialect: Dialect): string {
  const { body, stream } = request;
  requireCarried(body, bodyRules);
  const sent: JsonObject = {};
  for (const name of same) {
    const value = body[name];
    if (value !== undefined && value !== null) sent[name] = value;
  }
  const { reasoning_effort: effort, logprobs } = body;
  return JSON.stringify({
    ...sent,
    input: toInput(requireList(body.messages, "messages")),
    max_output_tokens: Math.min(cap, dialect.maxTokens, dialect.contextLeft),
    stream: stream ? true : undefined,
    store: false,
    ...writeResponsesTools(body),
    text: textOf(body),
    reasoning: effort === undefined || effort === null ? undefined : { effort },
    include: logprobs === true ? ["message.output_text.logprobs"] : undefined,
  });
}

/** How the output is written: by a schema, and how much. */
function textOf({ response_format: sent, verbosity }: JsonObject): JsonObject | undefined {
  const format = sent === undefined || sent === null ? null : toFormat(sent);
  const text = {
    ...(format ? { format } : {}),
    ...(verbosity === undefined || verbosity === null ? {} : { verbosity }),
  };
  return Object.keys(text).length > 0 ? text : undefined;
}

function toFormat(value: Json): JsonObject | null {
  const sent = requireObjectIn(value, "response_format");
  requireCarried(sent, formatRules, "response_format.");
  if (sent.type === "text") return null;
  if (sent.type === "json_object") return { type: "json_object" };
  if (sent.type !== "json_schema") throw notCarried("response_format.type");
  const at = "response_format.json_schema";
  const { name, description, schema, strict } = requireObjectIn(sent.json_schema, at);
  requireCarried(isObject(sent.json_schema) ? sent.json_schema : {}, schemaRules, `${at}.`);
  return {
    type: "json_schema",
    name: name ?? "response",
    ...(typeof description === "string" ? { description } : {}),
    schema: requireObjectIn(schema, `${at}.schema`),
    ...(typeof strict === "boolean" ? { strict } : {}),
  };
}
