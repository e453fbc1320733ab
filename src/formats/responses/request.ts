import { userIn } from "../../base/user_id.ts";
import { z } from "zod";
import { badRequest } from "../../base/errors.ts";
import { modelName, userField } from "../../base/fields.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, ModelRequest, RequestExtras } from "../../inference/model_request.ts";
import { asksReasoning, thinkingBudget } from "../chat/reasoning.ts";
import { noRequestExtras, requestedTier } from "../openai/extras.ts";
import { requireExactNames } from "../openai/fields.ts";
import { hostedNames, requireTools, toolsOfItem } from "./hosted_tools.ts";
import { inputItems, partsOf } from "./input_items.ts";
import { withoutOwnIds } from "./own_ids.ts";
import { requireServedFields } from "./refused_fields.ts";

const itemSchema = z.looseObject({
  type: z.string().nullish().meta({
    description: "Without one, an item with a role is a message.",
  }),
}).meta({ id: "ResponseInputItem" });

const count = z.int({ error: "must be a whole number" }).nullish();
/** Zero or less would be taken for no bound, and the caller would pay for all that is written. */
const bound = z.int({ error: "must be a whole number" })
  .min(1, { error: "must be at least 1; leave it out for no bound" }).nullish();

/** A request for a response. Only fields that the price depends on are checked. */
export const responsesRequestSchema = z.looseObject({
  model: modelName,
  input: z.union([z.string(), z.array(itemSchema)]).nullish(),
  instructions: z.string().nullish(),
  user: userField,
  stream: z.boolean().nullish(),
  max_output_tokens: bound.meta({ description: "Most output tokens, with reasoning." }),
  max_tool_calls: count.meta({ description: "Most calls of tools that run at the provider." }),
  tools: z.array(z.unknown()).nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  reasoning: z.looseObject({}).nullish(),
  previous_response_id: z.string().nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish().meta({ description: "`true` is not supported." }),
}).meta({ id: "ResponseRequest" });

const inputWords = "must be a text or a list of items";
// Items are checked one by one, up to the first error: see the request of a chat.
const checkedRequest = responsesRequestSchema.extend({
  input: z.custom<Json>(
    (value) => typeof value === "string" || Array.isArray(value),
    { error: inputWords },
  ).nullish(),
});
const fieldNames = [
  ...Object.keys(responsesRequestSchema.shape),
  ...["tool_choice", "conversation", "prompt", "prompt_cache_options", "context_management"],
];

/**
 * Reads a request for a response, without what is ours in it. Throws 400 for a malformed one, and
 * for what is refused.
 */
export function readResponsesRequest(
  sent: JsonObject,
  { bytes, fields }: { bytes: number; fields: FieldPolicy },
): ModelRequest {
  requireExactNames(sent, fieldNames);
  const request = parseWith(checkedRequest, sent);
  requireItems(sent);
  const body = withoutOwnIds(sent);
  requireServedFields(body, fields);
  const tools = Array.isArray(body.tools) ? body.tools : [];
  requireTools(tools, "tools");
  const format = request.text?.format?.type ?? "text";
  const requiresJson = format.startsWith("json") || isToolForced(body.tool_choice);
  const { max_output_tokens: maxTokens } = request;
  return {
    model: request.model,
    stream: request.stream ?? false,
    // Every response of this format reports usage.
    wantsUsage: true,
    choices: 1,
    maxTokens: maxTokens ?? null,
    structured: format !== "text" || requiresJson || tools.length > 0,
    requiresJson,
    asksReasoning: asksReasoning(withoutEmptyReasoning(body)),
    thinkingBudget: thinkingBudget(body),
    extras: extrasOf(body, tools),
    user: userIn(body),
    body,
    bytes,
  };
}

function requireItems(body: JsonObject): void {
  if (!Array.isArray(body.input)) return;
  for (const [index, item] of body.input.entries()) {
    const at = `input.${index}`;
    if (!isObject(item)) throw badRequest(at, `'${at}' must be an object.`);
    if (typeof (item.type ?? "") !== "string") {
      throw badRequest(`${at}.type`, `'${at}.type' must be a string.`);
    }
    if (!isContent(item.content)) {
      throw badRequest(`${at}.content`, `'${at}.content' must be a text or a list of parts.`);
    }
    for (const { field, part } of partsOf(item)) {
      if (typeof (part.type ?? "") === "string") continue;
      throw badRequest(`${at}.${field}`, `A part in '${at}.${field}' must have a type.`);
    }
    const tools = toolsOfItem(item);
    if (tools) requireTools(tools, `${at}.tools`);
  }
}

function isContent(content: Json | undefined): boolean {
  return content === undefined || content === null || typeof content === "string" ||
    (Array.isArray(content) && content.every(isObject));
}

/** Clients send `reasoning` with nothing in it. */
function withoutEmptyReasoning(body: JsonObject): JsonObject {
  const { reasoning, ...rest } = body;
  const isEmpty = isObject(reasoning) && Object.values(reasoning).every((value) => value === null);
  return isEmpty ? rest : body;
}

/** Whether the response must be a call of a tool that the caller runs. */
function isToolForced(choice: Json | undefined): boolean {
  if (!isObject(choice)) return choice === "required" || choice === "any";
  return choice.type === "function" || choice.type === "custom" ||
    (choice.type === "allowed_tools" && choice.mode === "required");
}

function extrasOf(body: JsonObject, tools: readonly Json[]): RequestExtras {
  const hostedTools = [...hostedNames(tools), ...inputItems(body).flatMap(hostedNamesOfItem)];
  const serviceTier = requestedTier(body);
  const hourCache = asksHourCache(body);
  const isPlain = hostedTools.length === 0 && serviceTier === null && !hourCache;
  if (isPlain) return noRequestExtras;
  const { max_tool_calls: bound } = body;
  const isBound = typeof bound === "number" && Number.isSafeInteger(bound) && bound >= 0;
  return {
    ...noRequestExtras,
    serviceTier,
    hostedTools,
    maxToolCalls: isBound ? bound : null,
    searchContext: searchContextOf(tools),
    hourCache,
  };
}

function hostedNamesOfItem(item: JsonObject): string[] {
  return hostedNames(toolsOfItem(item) ?? []);
}

function searchContextOf(tools: readonly Json[]): RequestExtras["searchContext"] {
  for (const tool of tools) {
    const size = isObject(tool) ? tool.search_context_size : null;
    if (size === "low" || size === "medium" || size === "high") return size;
  }
  return null;
}

/** Whether the body or a part of an item asks for cache entries that are kept for hours. */
function asksHourCache(body: JsonObject): boolean {
  if (isLong(body.prompt_cache_options)) return true;
  for (const item of inputItems(body)) {
    if (isLong(item.prompt_cache_breakpoint)) return true;
    for (const { part } of partsOf(item)) if (isLong(part.prompt_cache_breakpoint)) return true;
  }
  return false;
}

/** A life of minutes is the usual one. */
function isLong(options: Json | undefined): boolean {
  return isObject(options) && typeof options.ttl === "string" && !options.ttl.endsWith("m");
}
