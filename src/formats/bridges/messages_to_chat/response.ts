import { isObject, type JsonObject, plainText } from "../../../base/json.ts";
import { encodeUtf8 } from "../../../base/utf8.ts";
import type { BridgeOptions } from "../../../inference/format.ts";
import { invalidUpstreamResponse } from "../../../upstreams/errors.ts";
import { readChoicesBody } from "../../openai/response.ts";
import { servedBy, usageIn } from "../../openai/usage.ts";
import { bridgedChoice } from "../chat_reading.ts";
import { parsedArguments } from "../tool_input.ts";
import { billedUsageOf, toMessagesUsage } from "./usage.ts";
import { readCall, readWritten, thinkingBlock, thinkingForm, toMessageStop } from "./written.ts";

/** The input of a call whose arguments are not a JSON object: as Claude Code itself writes it. */
function unparsedInput(raw: string): JsonObject {
  return { __unparsedToolInput: { raw, len: raw.length } };
}

/**
 * A whole chat completion as Anthropic's message. Throws the error that it is, and 502 for anything
 * that is not valid.
 */
export function toMessage(bytes: Uint8Array, options: BridgeOptions): Uint8Array {
  const { request, head, apiKey } = options;
  const { body, choices: [sent = null] } = readChoicesBody(bytes, apiKey);
  const { model, tier } = servedBy(body);
  const raw = usageIn(body);
  const choice = bridgedChoice(sent, options);
  if (!choice || !isObject(choice.message)) {
    throw invalidUpstreamResponse("a choice without a message");
  }
  const { message } = choice;
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isObject) : [];
  const { thinking, thinkingField: field, text, refuses } = readWritten(message);
  const stop = toMessageStop(choice, { calls: calls.length > 0, refuses, request });
  const usage = billedUsageOf(raw ? toMessagesUsage(raw, tier) : null, stop);
  const content: JsonObject[] = [];
  const form = thinkingForm(request);
  const thought = { type: "thinking", ...thinkingBlock(form, { field, text: thinking }) };
  if (thinking !== "" && form === "shown") content.push(thought);
  if (text !== "") content.push({ type: "text", text });
  const isGivenBack = field !== "" && form !== "shown" && form !== "none";
  if (isGivenBack && calls.length > 0) content.push(thought);
  for (const call of calls) content.push(toToolUse(call));
  return encodeUtf8(JSON.stringify({
    id: head.id,
    type: "message",
    role: "assistant",
    model: model ?? head.model,
    content,
    ...stop,
    ...(usage ? { usage } : {}),
  }));
}

/** The model's mistake reaches the tool, whose error tells the model of it. */
function toToolUse(call: JsonObject): JsonObject {
  const { name, text } = readCall(call);
  const input = parsedArguments(text) ?? unparsedInput(text);
  return { type: "tool_use", id: plainText(call.id), name, input };
}
