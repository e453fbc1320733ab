import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { encodeUtf8 } from "../../../base/utf8.ts";
import type { BridgeOptions } from "../../../inference/format.ts";
import { invalidUpstreamResponse } from "../../../upstreams/errors.ts";
import { hasContent } from "../../messages/blocks.ts";
import { billedUnlessRefused, usageOf } from "../../messages/usage.ts";
import { readResponseBody } from "../../openai/response.ts";
import { type CallForm, callFormOf, customCall } from "./tools.ts";
import { toChatUsage } from "./usage.ts";

/**
 * A whole message of Anthropic's as a chat completion. Throws the error that it is, and 502 for
 * anything that is not valid.
 */
export function toCompletion(
  bytes: Uint8Array,
  { request, head, apiKey }: BridgeOptions,
): Uint8Array {
  const form = callFormOf(request.body);
  const body = readResponseBody(bytes, apiKey);
  const { id, model, content, stop_reason: reason } = body;
  if (!Array.isArray(content)) throw invalidUpstreamResponse("a message without content");
  const blocks = content.filter(isObject);
  const usage = billedUnlessRefused(usageOf(body), { reason, hasContent: hasContent(blocks) });
  const choice = {
    index: 0,
    message: toAssistantMessage(blocks, form),
    logprobs: null,
    ...(typeof reason === "string" ? { finish_reason: toFinishReason(reason, form) } : {}),
  };
  return encodeUtf8(JSON.stringify({
    id: typeof id === "string" ? id : head.id,
    object: "chat.completion",
    created: head.created,
    model: typeof model === "string" ? model : head.model,
    choices: [choice],
    ...(usage ? { usage: toChatUsage(usage) } : {}),
  }));
}

/**
 * The blocks of a message as the assistant's message. `thinking_blocks` holds those that are
 * signed: a client that sends them back lets the model go on thinking after a tool's result.
 */
function toAssistantMessage(blocks: readonly JsonObject[], form: CallForm): JsonObject {
  const text = blocks.filter(({ type }) => type === "text").map(({ text }) => textIn(text)).join(
    "",
  );
  const uses = blocks.filter(({ type }) => type === "tool_use");
  const thoughts = blocks.filter(({ type }) => type === "thinking");
  const reasoning = thoughts.map(({ thinking }) => textIn(thinking)).join("");
  const signed = blocks.filter(isSignedThinking);
  return {
    role: "assistant",
    content: text === "" && uses.length > 0 ? null : text,
    refusal: null,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(signed.length > 0 ? { thinking_blocks: signed } : {}),
    ...toCalls(uses, form),
  };
}

function toCalls(uses: readonly JsonObject[], form: CallForm): JsonObject {
  const calls = uses.map((use, index) => toToolCall(use, { index, form }));
  const [first] = calls;
  if (!first) return {};
  return form.isLegacy ? { function_call: first.function ?? null } : { tool_calls: calls };
}

/** Whether a block is thinking that Anthropic takes back. */
export function isSignedThinking({ type, signature, data }: JsonObject): boolean {
  if (type === "redacted_thinking") return typeof data === "string";
  return type === "thinking" && typeof signature === "string" && signature !== "";
}

function toToolCall(
  { id, name, input }: JsonObject,
  { index, form }: { index: number; form: CallForm },
): JsonObject {
  const written = JSON.stringify(isObject(input) ? input : {});
  const called = textIn(name);
  return {
    id: typeof id === "string" ? id : `call_${index}`,
    ...(form.isCustom(called)
      ? customCall(called, written)
      : { type: "function", function: { name: called, arguments: written } }),
  };
}

function textIn(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Why a message ended, in chat's words. Other reasons than these are ends like any other. */
export function toFinishReason(reason: string, { isLegacy }: CallForm): string {
  if (reason === "tool_use" && isLegacy) return "function_call";
  return finishReasons.get(reason) ?? "stop";
}
const finishReasons: ReadonlyMap<string, string> = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);
