import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import {
  fieldRules,
  isEmpty,
  notCarried,
  requireCarried,
  requireList,
  requireObjectIn,
  requireString,
} from "../carried_fields.ts";
import { parsedArguments } from "../tool_input.ts";
import { toBlocks } from "./content.ts";
import { isSignedThinking } from "./response.ts";

/** A turn of Anthropic's messages, whose content is never empty. */
type MessagesTurn = { role: "user" | "assistant" | "system"; content: JsonObject[] };

/** Names of participants are refused, since the model reads them. */
const promptRules = fieldRules({ carried: "role content cache_control" });
/** The call's id says which tool it is. */
const toolRules = fieldRules({
  carried: "role content cache_control tool_call_id",
  dropped: "name",
});
/** Dropped is reasoning without a signature, and what servers add for the caller alone. */
const assistantRules = fieldRules({
  carried: "role content cache_control tool_calls refusal thinking_blocks prefix partial",
  dropped: "reasoning reasoning_content reasoning_details thinking annotations parsed " +
    "provider_specific_fields",
  unless: { images: isEmpty },
});

/**
 * The messages of a chat as Anthropic's system prompt and turns. Leading instructions are the
 * system prompt, later ones are turns of their own, which newer models take. Messages of one role
 * become one turn. A message that says nothing is left out. Throws 400 for what messages cannot
 * carry: among others an assistant's message at the end, which Anthropic would continue, unless it
 * asks for that by `prefix` or `partial`.
 */
export function toTurns(
  messages: readonly Json[],
): { system: JsonObject[]; turns: MessagesTurn[] } {
  const system: JsonObject[] = [];
  const turns: MessagesTurn[] = [];
  for (const [index, sent] of messages.entries()) {
    const at = `messages.${index}`;
    const message = requireObjectIn(sent, at);
    const content = cached(contentOf(message, at), message);
    if (content.length === 0) continue;
    const role = roleOf(message);
    if (role === "system" && turns.length === 0) {
      system.push(...content);
      continue;
    }
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content });
  }
  if (turns.length === 0) throw badRequest("messages", "'messages' must have a message with text.");
  requireAnswerable(messages);
  return { system, turns };
}

function roleOf({ role }: JsonObject): MessagesTurn["role"] {
  if (role === "assistant") return role;
  return role === "system" || role === "developer" ? "system" : "user";
}

function contentOf(message: JsonObject, at: string): JsonObject[] {
  switch (message.role) {
    case "system":
    case "developer": {
      requireCarried(message, promptRules, `${at}.`);
      const blocks = toBlocks(message.content, `${at}.content`);
      if (blocks.every(({ type }) => type === "text")) return blocks;
      throw notCarried(`${at}.content`);
    }
    case "user":
      requireCarried(message, promptRules, `${at}.`);
      return toBlocks(message.content, `${at}.content`);
    case "assistant":
      requireCarried(message, assistantRules, `${at}.`);
      return assistantBlocks(message, at);
    case "tool":
      requireCarried(message, toolRules, `${at}.`);
      return [toolResult(message, at)];
    default:
      throw notCarried(`${at}.role`);
  }
}

/** A mark for the cache on a message is one on its last block. */
function cached(blocks: JsonObject[], { cache_control: mark }: JsonObject): JsonObject[] {
  const last = blocks.at(-1);
  if (!last || !isObject(mark)) return blocks;
  return [...blocks.slice(0, -1), { ...last, cache_control: mark }];
}

function requireAnswerable(messages: readonly Json[]): void {
  const last = messages.at(-1);
  if (!isObject(last) || last.role !== "assistant" || last.prefix === true) return;
  if (last.partial !== true) throw notCarried(`messages.${messages.length - 1}.role`);
}

/** Thinking with its signature comes first, as Anthropic wrote it, then the text and the calls. */
function assistantBlocks(message: JsonObject, at: string): JsonObject[] {
  const { content, refusal, thinking_blocks: thoughts, tool_calls: calls } = message;
  const thinking = requireList(thoughts, `${at}.thinking_blocks`).filter(isObject).filter(
    isSignedThinking,
  );
  const said = toBlocks(content, `${at}.content`).filter((block) => isSaid(block, at));
  if (said.length === 0 && typeof refusal === "string" && refusal !== "") {
    said.push({ type: "text", text: refusal });
  }
  const within = `${at}.tool_calls`;
  const uses = requireList(calls, within).map((call, index) =>
    toToolUse(requireObjectIn(call, `${within}.${index}`), `${within}.${index}`)
  );
  return [...thinking, ...said, ...uses];
}

/** Throws 400 for a part that no assistant of Anthropic's says. */
function isSaid(block: JsonObject, at: string): boolean {
  const { type } = block;
  if (type === "text" || type === "thinking" || type === "redacted_thinking") {
    return type === "text" || isSignedThinking(block);
  }
  throw notCarried(`${at}.content`);
}

function toToolUse(
  { id, type = "function", function: called }: JsonObject,
  at: string,
): JsonObject {
  if (type !== "function") throw notCarried(`${at}.type`);
  const { name, arguments: given } = requireObjectIn(called, `${at}.function`);
  const within = `${at}.function.arguments`;
  const input = isObject(given) ? given : parsedArguments(requireString(given ?? "", within));
  if (input === null) throw badRequest(within, `'${within}' must be a JSON object, as text.`);
  return {
    type: "tool_use",
    id: toolUseId(requireString(id, `${at}.id`)),
    name: requireString(name, `${at}.function.name`),
    input,
  };
}

function toolResult({ tool_call_id: id, content }: JsonObject, at: string): JsonObject {
  const blocks = toBlocks(content, `${at}.content`);
  const callId = toolUseId(requireString(id, `${at}.tool_call_id`));
  return {
    type: "tool_result",
    tool_use_id: callId,
    ...(blocks.length > 0 ? { content: blocks } : {}),
  };
}

const foreignCharacter = /[^\w-]/g;

/** Ids only connect a call and its result. Anthropic takes letters, digits, `_` and `-`. */
function toolUseId(id: string): string {
  return id.replace(foreignCharacter, (character) => `_${character.charCodeAt(0)}_`);
}
