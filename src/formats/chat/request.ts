import { userIn } from "../../base/user_id.ts";
import { z } from "zod";
import { modelName, userField } from "../../base/fields.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { choicesMax } from "../../base/limits.ts";
import { parseWith } from "../../base/request.ts";
import { isSet, requireExactNames } from "../openai/fields.ts";
import { chatMessageFields, requireKnownChatFields } from "../openai/known_fields.ts";
import { isCallersTool, readExtras, requiresJsonElsewhere } from "../openai/extras.ts";
import {
  requireNoStoredFields,
  requireNothingStored,
  storedElsewhere,
} from "../openai/stored_things.ts";
import { textParts } from "./prompt.ts";
import { asksReasoning, thinkingBudget } from "./reasoning.ts";
import type { FieldPolicy, ModelRequest } from "../../inference/model_request.ts";

/** Every message role that OpenAI knows. */
const roles = ["system", "developer", "user", "assistant", "tool", "function"] as const;

const knownRoles = new Set<unknown>(roles);

const contentPart = z.looseObject({ type: z.string() }).meta({ id: "ContentPart" });
type Content = string | z.output<typeof contentPart>[];

const messageSchema = z.looseObject({
  role: z.enum(roles),
  content: z.union([z.string(), z.array(contentPart)]).nullish(),
}).meta({ id: "ChatMessage" });

const atLeastOne = { error: "must have at least one message" };

/** Zero or less would be taken for no bound, and the caller would pay for all that is written. */
const bound = z.int({ error: "must be a whole number" })
  .min(1, { error: "must be at least 1; leave it out for no bound" }).nullish();

/**
 * A chat request. Only fields that the price depends on are checked; the upstream checks the rest.
 */
export const chatSchema = z.looseObject({
  model: modelName,
  messages: z.array(messageSchema).min(1, atLeastOne),
  user: userField,
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().min(1).max(choicesMax).nullish().meta({ description: "Responses to generate." }),
  max_tokens: bound.meta({ description: "Most output tokens." }),
  max_completion_tokens: bound.meta({
    description: "The same; takes precedence over `max_tokens`.",
  }),
  n_predict: bound.meta({
    description: "The same, as llama.cpp calls it; has the lowest precedence.",
  }),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  reasoning_effort: z.string().nullish(),
}).meta({ id: "ChatRequest" });

// Lists are checked item by item, up to the first error: zod makes an object for each error, and a
// hostile body could contain more of them than there is memory.
const checkedChat = chatSchema.extend({ messages: z.array(z.unknown()).min(1, atLeastOne) });
const checkedMessage = messageSchema.extend({
  content: z.custom<Content>(isContent, {
    error: "must be a string or an array of content parts",
  }).nullish(),
});

/**
 * Whether a message has a role and a text, and nothing else: the schema takes ten times as long to
 * find that out.
 */
function isPlainMessage(message: unknown): boolean {
  if (!isObject(message) || typeof message.content !== "string") return false;
  if (!knownRoles.has(message.role)) return false;
  for (const name in message) if (name !== "role" && name !== "content") return false;
  return true;
}

function isContent(value: unknown): value is Content {
  if (typeof value === "string") return true;
  const isPart = (part: unknown) => isObject(part) && typeof part.type === "string";
  return Array.isArray(value) && value.every(isPart);
}

/**
 * Fields by which a caller may bound the output, in order of precedence. None is passed on as sent.
 */
export const maxTokensFields = ["max_completion_tokens", "max_tokens", "n_predict"] as const;

const fieldNames = Object.keys(chatSchema.shape);
/** The name in `allowedFields` for the id of an earlier response's sound. */
const soundField = "audio.id";

/**
 * Reads a chat request. Throws 400 for a malformed one, and for fields that the policy refuses.
 */
export function readChatRequest(
  body: JsonObject,
  { bytes, fields }: { bytes: number; fields: FieldPolicy },
): ModelRequest {
  requireExactNames(body, fieldNames);
  const chat = parseWith(checkedChat, body);
  for (const [index, message] of chat.messages.entries()) {
    const at = `messages.${index}`;
    if (isPlainMessage(message)) continue;
    const checked = parseWith(checkedMessage, message, ["messages", index]);
    requireOwnParts(checked, at, fields.allowed);
    // Others are refused by their names.
    if (fields.unknown === "pass" && isObject(message)) {
      requireNothingStored(message, { at, allowed: fields.allowed }, chatMessageFields);
    }
  }
  requireKnownChatFields(body, fields);
  requireNoStoredFields(body, fields.allowed);
  requireOwnTools(body.tools, fields.allowed);
  const format = chat.response_format?.type ?? "text";
  return {
    model: chat.model,
    stream: chat.stream ?? false,
    wantsUsage: chat.stream_options?.include_usage ?? false,
    choices: chat.n ?? 1,
    maxTokens: maxTokensFields.map((field) => chat[field]).find(isSet) ?? null,
    structured: format !== "text" || Boolean(chat.tools?.length || chat.functions?.length),
    requiresJson: format.startsWith("json") || isToolForced(body) || requiresJsonElsewhere(body),
    asksReasoning: asksReasoning(body),
    thinkingBudget: thinkingBudget(body),
    extras: readExtras(body),
    user: userIn(body),
    body,
    bytes,
  };
}

/** Throws 400 for a part that refers to a file, and for the sound of an earlier response. */
function requireOwnParts(
  { content, audio }: z.output<typeof checkedMessage>,
  at: string,
  allowed: readonly string[],
): void {
  if (isObject(audio) && typeof audio.id === "string" && !allowed.includes(soundField)) {
    throw storedElsewhere(audio.id, { at: `${at}.audio.id`, opens: soundField });
  }
  if (!Array.isArray(content)) return;
  for (const [index, part] of content.entries()) {
    const isMedia = isObject(part) && !textParts.has(part.type);
    if (isMedia) requireNothingStored(part, { at: `${at}.content.${index}`, allowed });
  }
}

/** Throws 400 where a tool that runs at the provider names what is stored at the upstream. */
function requireOwnTools(tools: Json | undefined, allowed: readonly string[]): void {
  for (const [index, tool] of Array.isArray(tools) ? tools.entries() : []) {
    if (isObject(tool) && !isCallersTool(tool)) {
      requireNothingStored(tool, { at: `tools.${index}`, allowed });
    }
  }
}

/** Whether the response must be a tool call: any of them, or one by name. */
function isToolForced({ tool_choice: choice, function_call: legacy }: JsonObject): boolean {
  return choice === "required" || choice === "any" || isObject(legacy) ||
    (isObject(choice) && choice.type !== "auto" && choice.type !== "none" &&
      !(choice.type === "allowed_tools" && isObject(choice.allowed_tools) &&
        choice.allowed_tools.mode === "auto"));
}
