import { z } from "zod";
import { badRequest } from "../base/errors.ts";
import { userField } from "../base/fields.ts";
import type { JsonObject } from "../base/json.ts";
import { choicesMax } from "../base/limits.ts";
import { parseWith } from "../base/request.ts";

/** Every author that OpenAI knows. */
const roles = ["system", "developer", "user", "assistant", "tool", "function"] as const;

const contentPart = z.looseObject({ type: z.string() }).meta({ id: "ContentPart" });

const messageSchema = z.looseObject({
  role: z.enum(roles),
  content: z.union([z.string(), z.array(contentPart)], {
    error: "must be a string or an array of content parts",
  }).nullish(),
}).meta({ id: "ChatMessage" });

const count = z.int({ error: "must be a whole number" }).nullish();

/** A chat request. Only what the price depends on is read; the rest is for the upstream to judge. */
export const chatSchema = z.looseObject({
  model: z.string().min(1).max(256),
  messages: z.array(messageSchema).min(1, { error: "must have at least one message" }),
  user: userField,
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().min(1).max(choicesMax).nullish().meta({ description: "How many answers." }),
  max_tokens: count.meta({ description: "Most output tokens. Zero and less mean no bound." }),
  max_completion_tokens: count.meta({ description: "The same; it counts before `max_tokens`." }),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  reasoning_effort: z.string().nullish(),
}).meta({ id: "ChatRequest" });

/** A message as far as the price depends on it. */
export type ChatMessage = z.output<typeof messageSchema>;

/** A chat request: what the price depends on, and the body that goes on to the upstream. */
export interface ChatRequest {
  model: string;
  messages: ChatMessage[];
  stream: boolean;
  /** Whether a streaming caller wants the usage chunk. */
  wantsUsage: boolean;
  choices: number;
  /** The caller's bound on the output, or null. Zero and less mean none, as some tools send. */
  maxTokens: number | null;
  maxTokensField: "max_tokens" | "max_completion_tokens" | null;
  /** Tools or a JSON format: an answer cut short would be of no use. */
  structured: boolean;
  /** The caller asks for hidden reasoning. */
  reasons: boolean;
  body: JsonObject;
  /** The length of the body as it came, in bytes. */
  bytes: number;
}

/** Fields whose cost no price here covers; the value says which uses of them are meant. */
const unpricedFields = Object.entries<(value: unknown) => boolean>({
  models: isSet,
  plugins: isSet,
  web_search_options: isSet,
  audio: isSet,
  service_tier: (tier) => isSet(tier) && tier !== "auto" && tier !== "default",
  modalities: (list) => isSet(list) && JSON.stringify(list) !== '["text"]',
});

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/**
 * Reads a chat request. Throws 400 for what is malformed, and for fields that would cost what is not
 * priced, unless the project allows them.
 */
export function readChat(
  body: JsonObject,
  { bytes, allowedFields }: { bytes: number; allowedFields: readonly string[] },
): ChatRequest {
  const chat = parseWith(chatSchema, body);
  for (const [field, costs] of unpricedFields) {
    if (!costs(body[field]) || allowedFields.includes(field)) continue;
    throw badRequest(
      field,
      `'${field}' is not supported here: it costs what this project has no price for.`,
      "unsupported_parameter",
    );
  }
  const both = { max_completion_tokens: chat.max_completion_tokens, max_tokens: chat.max_tokens };
  const maxTokensField = bound(both.max_completion_tokens)
    ? "max_completion_tokens"
    : bound(both.max_tokens)
    ? "max_tokens"
    : null;
  const format = chat.response_format?.type ?? "text";
  const effort = chat.reasoning_effort ?? "none";
  return {
    model: chat.model,
    messages: chat.messages,
    stream: chat.stream ?? false,
    wantsUsage: chat.stream_options?.include_usage ?? false,
    choices: chat.n ?? 1,
    maxTokens: maxTokensField && bound(both[maxTokensField]),
    maxTokensField,
    structured: format !== "text" || Boolean(chat.tools?.length || chat.functions?.length),
    reasons: effort !== "none" || isSet(body.reasoning) || isSet(body.thinking),
    body,
    bytes,
  };
}

function bound(value: number | null | undefined): number | null {
  return typeof value === "number" && value > 0 ? value : null;
}
