import { isObject, type JsonObject, plainText } from "../../../base/json.ts";
import { encodeUtf8 } from "../../../base/utf8.ts";
import type { BridgeOptions } from "../../../inference/format.ts";
import { parseResponse } from "../../openai/response.ts";
import { servedBy } from "../../openai/usage.ts";
import { failureOf } from "../../responses/failure.ts";
import { requireOutput } from "../../responses/response.ts";
import { isFailed } from "../../responses/response_object.ts";
import { ToolCallCount, usageWithTools } from "../../responses/tool_calls.ts";
import { usageFromResponse } from "./usage.ts";
import {
  betweenItems,
  callTypeOf,
  chatReasonOf,
  citationsIn,
  logprobsOf,
  readsLegacyCalls,
  toChatCall,
  writtenPlaces,
} from "./written.ts";

/**
 * A whole response as a chat completion. Throws the error of one that says it failed, and 502 for
 * anything that is not valid.
 */
export function toChatCompletion(
  bytes: Uint8Array,
  { request, head, apiKey }: BridgeOptions,
): Uint8Array {
  const sent = parseResponse(bytes);
  if (isFailed(sent)) throw failureOf(sent, apiKey);
  const output = requireOutput(sent, head);
  const calls = new ToolCallCount();
  for (const item of output) calls.add(item);
  const usage = usageWithTools(sent, calls.calls);
  const { model, tier } = servedBy(sent);
  const isLegacy = readsLegacyCalls(request);
  const hasCalls = output.some((item) => callTypeOf(item) !== null);
  const said = output.filter(({ type }) => type === "message").flatMap(partsOf);
  const choice = {
    index: 0,
    message: toMessage(output, isLegacy),
    logprobs: logprobsOf(said.flatMap(({ logprobs }) => Array.isArray(logprobs) ? logprobs : [])),
    finish_reason: chatReasonOf(sent, { hasCalls, isLegacy }),
  };
  return encodeUtf8(JSON.stringify({
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: model ?? head.model,
    ...(tier === null ? {} : { service_tier: tier }),
    choices: [choice],
    ...(usage ? { usage: usageFromResponse(usage) } : {}),
  }));
}

function toMessage(output: readonly JsonObject[], isLegacy: boolean): JsonObject {
  const messages = output.filter(({ type }) => type === "message");
  const text = joined(messages.map((item) => textIn(partsOf(item), "text")));
  const refusal = joined(messages.map((item) => textIn(partsOf(item), "refusal")));
  const reasoning = joined(output.filter(({ type }) => type === "reasoning").flatMap(thoughtsIn));
  const annotations = messages.flatMap(citationsIn);
  const calls = output.filter((item) => callTypeOf(item) !== null).map((item) =>
    toChatCall(item, plainText(item[writtenPlaces[callTypeOf(item) ?? "function"]]))
  );
  const [first] = calls;
  return {
    role: "assistant",
    content: text === "" && (calls.length > 0 || refusal !== "") ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(annotations.length > 0 ? { annotations } : {}),
    ...(!first ? {} : isLegacy ? { function_call: first.function ?? null } : { tool_calls: calls }),
  };
}

function joined(texts: string[]): string {
  return texts.filter((text) => text !== "").join(betweenItems);
}

function partsOf({ content }: JsonObject): JsonObject[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function textIn(parts: readonly JsonObject[], member: "text" | "refusal"): string {
  return parts.map((part) => plainText(part[member] ?? "")).join("");
}

/** The summary of an item of reasoning, and the reasoning itself where a server shows it. */
function thoughtsIn({ summary, content }: JsonObject): string[] {
  return [summary, content].flatMap((parts) => (Array.isArray(parts) ? parts : []))
    .filter(isObject).map((part) => textIn([part], "text"));
}
