import { z } from "zod";
import { modelName } from "../../base/fields.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, ModelRequest, RequestExtras } from "../../inference/model_request.ts";
import { requireExactNames } from "../openai/fields.ts";
import { blocksOf } from "./content.ts";
import { requireKnownMessageFields, requireOwnContent } from "./known_fields.ts";
import { hostedToolsOf, maxUsesOf } from "./tools.ts";

const blockSchema = z.looseObject({ type: z.string() }).meta({ id: "ContentBlock" });
const content = z.union([z.string(), z.array(blockSchema)]);
type Content = z.output<typeof content>;

const roles = ["user", "assistant", "system"] as const;
const knownRoles = new Set<unknown>(roles);

const messageSchema = z.looseObject({ role: z.enum(roles), content }).meta({ id: "InputMessage" });
const atLeastOne = { error: "must have at least one message" };
const count = z.int({ error: "must be a whole number" }).min(0, { error: "must be at least 0" });

/** A request to count tokens. Only fields that the price depends on are checked. */
export const countRequestSchema = z.looseObject({
  model: modelName,
  messages: z.array(messageSchema).min(1, atLeastOne),
  system: content.nullish(),
  tools: z.array(z.looseObject({})).nullish(),
  tool_choice: z.looseObject({ type: z.string() }).nullish(),
  thinking: z.looseObject({ type: z.string(), budget_tokens: count.nullish() }).nullish(),
  output_config: z.looseObject({}).nullish(),
  mcp_servers: z.array(z.looseObject({})).nullish(),
}).meta({ id: "CountTokensRequest" });

/** A request for a message. Only fields that the price depends on are checked. */
export const messagesRequestSchema = countRequestSchema.extend({
  max_tokens: count.meta({
    description: "Most output tokens, those of thinking included. 0 fills the cache only.",
  }),
  stream: z.boolean().nullish(),
  service_tier: z.string().nullish(),
  speed: z.string().nullish(),
  inference_geo: z.string().nullish(),
}).meta({ id: "MessagesRequest" });

const contentWords = "must be a string or an array of content blocks";
// Lists are checked item by item, up to the first error: zod makes an object for each error, and a
// hostile body could contain more of them than there is memory.
const checked = {
  messages: z.array(z.unknown()).min(1, atLeastOne),
  system: z.custom<Content>(isContent, { error: contentWords }).nullish(),
  tools: z.custom<JsonObject[]>(isListOfObjects, { error: "must be an array of objects" })
    .nullish(),
  mcp_servers: z.custom<JsonObject[]>(isListOfObjects, { error: "must be an array of objects" })
    .nullish(),
};
const checkedRequest = messagesRequestSchema.extend(checked);
const checkedCount = countRequestSchema.extend(checked);
const checkedMessage = messageSchema.extend({
  content: z.custom<Content>(isContent, { error: contentWords }),
});

/** Fields that a cost depends on. Some servers would read them in any letter case. */
const fieldNames = [
  ...Object.keys(messagesRequestSchema.shape),
  ...["cache_control", "compaction", "container", "context_management", "output_format", "thread"],
];

/** Whether a message is of the usual kind: the schema takes ten times as long to find that out. */
function isPlainMessage(message: unknown): boolean {
  return isObject(message) && typeof message.content === "string" && knownRoles.has(message.role);
}

function isContent(value: unknown): value is Content {
  if (typeof value === "string") return true;
  const isBlock = (block: unknown) => isObject(block) && typeof block.type === "string";
  return Array.isArray(value) && value.every(isBlock);
}

function isListOfObjects(value: unknown): value is JsonObject[] {
  return Array.isArray(value) && value.every(isObject);
}

interface ReadOptions {
  bytes: number;
  fields: FieldPolicy;
}

/** Reads a request for a message. Throws 400 for a malformed one, and for refused fields. */
export function readMessagesRequest(body: JsonObject, options: ReadOptions): ModelRequest {
  requireExactNames(body, fieldNames);
  const { model, max_tokens: maxTokens, stream } = parseWith(checkedRequest, body);
  requireValidContent(body, options.fields);
  return requestOf(body, { ...options, model, maxTokens, stream: stream ?? false });
}

/** Reads a request to count tokens, by the same rules. */
export function readCountRequest(body: JsonObject, options: ReadOptions): ModelRequest {
  requireExactNames(body, fieldNames);
  const { model } = parseWith(checkedCount, body);
  requireValidContent(body, options.fields);
  return requestOf(body, { ...options, model, maxTokens: 0, stream: false });
}

function requireValidContent(body: JsonObject, fields: FieldPolicy): void {
  const { messages } = body;
  for (const [index, message] of Array.isArray(messages) ? messages.entries() : []) {
    if (!isPlainMessage(message)) parseWith(checkedMessage, message, ["messages", index]);
  }
  requireKnownMessageFields(body, fields);
  requireOwnContent(body, fields.allowed);
}

function requestOf(
  body: JsonObject,
  { bytes, ...read }: Pick<ModelRequest, "bytes" | "model" | "maxTokens" | "stream">,
): ModelRequest {
  const { thinking, tools, tool_choice: choice } = body;
  const asksJson = asksFormat(body);
  const isForced = isObject(choice) && (choice.type === "any" || choice.type === "tool");
  return {
    ...read,
    // It is never left out of a message.
    wantsUsage: true,
    choices: 1,
    structured: asksJson || (Array.isArray(tools) && tools.length > 0),
    requiresJson: asksJson || isForced,
    asksReasoning: isObject(thinking) && thinking.type !== "disabled",
    // It is lowered with the output bound: see upstream_body.ts.
    thinkingBudget: null,
    extras: extrasOf(body),
    // `metadata.user_id` identifies devices and sessions.
    user: undefined,
    body,
    bytes,
  };
}

function asksFormat({ output_config: output, output_format: format }: JsonObject): boolean {
  return isObject(format) || (isObject(output) && isObject(output.format));
}

function extrasOf(body: JsonObject): RequestExtras {
  return {
    serviceTier: tierOf(body),
    modalities: null,
    hostedTools: hostedToolsOf(body),
    maxToolCalls: maxUsesOf(body),
    searchContext: null,
    hourCache: asksHourCache(body),
  };
}

/** The region that a request binds its inference to, which has a price like a service tier. */
export function boundGeo({ inference_geo: geo }: JsonObject): string | null {
  return typeof geo === "string" && geo !== "" && geo !== "global" ? geo.toLowerCase() : null;
}

function tierOf(body: JsonObject): string | null {
  const { speed, service_tier: tier } = body;
  if (typeof speed === "string" && speed !== "standard") return speed.toLowerCase();
  return boundGeo(body) ?? (typeof tier === "string" ? tier.toLowerCase() : null);
}

/** Whether a request asks anywhere for a cache entry that is kept longer than five minutes. */
function asksHourCache(body: JsonObject): boolean {
  const { tools } = body;
  return isLong(body) || blocksOf(body).some(({ block }) => isLong(block)) ||
    (Array.isArray(tools) && tools.some((tool) => isObject(tool) && isLong(tool)));
}

function isLong({ cache_control: control, caching }: JsonObject): boolean {
  return [control, caching].some((one) =>
    isObject(one) && typeof one.ttl === "string" && one.ttl !== "5m"
  );
}
