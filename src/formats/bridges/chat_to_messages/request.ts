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
} from "../carried_fields.ts";
import { writeMessagesTools } from "./tools.ts";
import { toTurns } from "./turns.ts";

/**
 * Fields of a chat request. Dropped are: what the service itself decides or reports
 * (`stream_options`, `usage`, the bound of hosted tools' calls), names of the caller's user and
 * data that no model reads, and what concerns OpenAI's storage and cache alone. The others are
 * refused unless their value is the one that applies without them.
 */
const bodyRules = fieldRules({
  carried: "model messages max_tokens max_completion_tokens n_predict stream tools tool_choice " +
    "parallel_tool_calls functions function_call stop temperature top_p top_k response_format " +
    "reasoning_effort thinking cache_control service_tier",
  dropped: "stream_options usage user safety_identifier metadata store prompt_cache_key " +
    "prompt_cache_retention prompt_cache_options max_tool_calls tool_stream",
  unless: {
    n: isOneOf(1),
    frequency_penalty: isOneOf(0),
    presence_penalty: isOneOf(0),
    logit_bias: isEmpty,
    logprobs: isOneOf(false),
    top_logprobs: isOneOf(0),
    modalities: (list) => Array.isArray(list) && list.length === 1 && list[0] === "text",
    verbosity: isOneOf("medium"),
    speed: isOneOf("standard"),
  },
});

/** The names of providers' standard tiers, and Anthropic's for it. */
const standardTiers = ["default", "standard", "standard_only", "on_demand"];

const formatRules = fieldRules({ carried: "type json_schema" });
/** Anthropic enforces every schema, and its formats have no names. */
const schemaRules = fieldRules({ carried: "schema", dropped: "name description strict" });

/**
 * The body for an upstream that speaks Anthropic's messages, as JSON text. Throws 400 for what
 * messages cannot carry.
 */
export function writeBodyAsMessages(request: ModelRequest, cap: number, dialect: Dialect): string {
  const { body, stream } = request;
  requireCarried(body, bodyRules);
  const { system, turns } = toTurns(requireList(body.messages, "messages"));
  if (asksJsonObject(body)) system.push({ type: "text", text: jsonOnly });
  return JSON.stringify({
    model: body.model,
    max_tokens: Math.min(cap, dialect.maxTokens, dialect.contextLeft),
    ...(system.length > 0 ? { system } : {}),
    messages: turns,
    stream: stream ? true : undefined,
    ...writeMessagesTools(body),
    stop_sequences: stopsOf(body),
    temperature: temperatureOf(body),
    // One is what applies without it, and beside a temperature it is refused.
    top_p: body.top_p === 1 ? undefined : body.top_p ?? undefined,
    top_k: body.top_k ?? undefined,
    ...outputConfigOf(body),
    cache_control: body.cache_control ?? undefined,
    service_tier: tierOf(body),
  });
}

/** Anthropic has no output that is JSON without a schema, so the model is told in words. */
const jsonOnly = "Answer with one JSON object and nothing else: no other text, no Markdown.";

function asksJsonObject({ response_format: format }: JsonObject): boolean {
  return isObject(format) && format.type === "json_object";
}

/** Chat's range is twice Anthropic's; one is what applies without the field in both. */
function temperatureOf({ temperature }: JsonObject): Json | undefined {
  if (temperature === 1) return undefined;
  if (typeof temperature !== "number" || temperature <= 1) return temperature ?? undefined;
  throw badRequest(
    "temperature",
    "'temperature' may be at most 1 with this model, whose upstream speaks Anthropic's messages.",
  );
}

/** Anthropic refuses stop sequences that are blank. */
function stopsOf({ stop }: JsonObject): Json[] | undefined {
  const stops = (Array.isArray(stop) ? stop : [stop ?? ""]).filter((each) => !isBlank(each));
  return stops.length > 0 ? stops : undefined;
}

function isBlank(text: Json): boolean {
  return typeof text === "string" && text.trim() === "";
}

function tierOf({ service_tier: tier }: JsonObject): Json | undefined {
  if (tier === undefined || tier === null || tier === "auto") return undefined;
  if (isOneOf(...standardTiers)(tier)) return "standard_only";
  throw notCarried("service_tier");
}

/**
 * The schema of the output and the effort, which has the same words in both formats, except that
 * no effort at all is thinking that is off, and the least is Anthropic's `low`. A `thinking` of the
 * caller's is Anthropic's own field.
 */
function outputConfigOf(body: JsonObject): JsonObject {
  const { reasoning_effort: effort, response_format: sent, thinking } = body;
  const format = isObject(sent) ? toOutputFormat(sent) : null;
  const thinks = isObject(thinking)
    ? { thinking }
    : effort === "none"
    ? { thinking: { type: "disabled" } }
    : {};
  const config = {
    ...(typeof effort === "string" && effort !== "none"
      ? { effort: effort === "minimal" ? "low" : effort }
      : {}),
    ...(format ? { format } : {}),
  };
  return Object.keys(config).length > 0 ? { ...thinks, output_config: config } : thinks;
}

function toOutputFormat(sent: JsonObject): JsonObject | null {
  if (sent.type === "text" || sent.type === "json_object") return null;
  requireCarried(sent, formatRules, "response_format.");
  if (sent.type !== "json_schema") throw notCarried("response_format.type");
  const at = "response_format.json_schema";
  const named = requireObjectIn(sent.json_schema, at);
  requireCarried(named, schemaRules, `${at}.`);
  return { type: "json_schema", schema: requireObjectIn(named.schema, `${at}.schema`) };
}
