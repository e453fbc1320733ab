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
import {
  legacyCallId,
  legacyCallIdBefore,
  participants,
  spokenName,
} from "../chat_participants.ts";
import { customArguments } from "../custom_tool.ts";
import { parsedArguments } from "../tool_input.ts";
import { toBlocks } from "./content.ts";
import { isSignedThinking } from "./response.ts";

/** A turn of Anthropic's messages, whose content is never empty. */
type MessagesTurn = { role: "user" | "assistant"; content: JsonObject[] };

const promptRules = fieldRules({ carried: "role content name cache_control" });
/** The call's id says which tool it is. */
const toolRules = fieldRules({
  carried: "role content cache_control tool_call_id",
  dropped: "name",
});
/** The result of an older call, which has no id. */
const functionRules = fieldRules({ carried: "role content name cache_control" });
/**
 * Dropped is the name, since the model knows its own turns, reasoning without a signature, and what
 * servers add for the caller alone.
 */
const assistantRules = fieldRules({
  carried: "role content cache_control tool_calls function_call refusal thinking_blocks prefix " +
    "partial",
  dropped: "name reasoning reasoning_content reasoning_details thinking annotations parsed " +
    "provider_specific_fields",
  unless: { images: isEmpty },
});

/**
 * The messages of a chat as Anthropic's system prompt and turns. Instructions are the system
 * prompt wherever they stand, since Anthropic has no other place; where there is nothing else, they
 * are what the user says. Messages of one role become one turn. A message that says nothing is left
 * out. Throws 400 for what messages cannot carry: among others an assistant's message at the end,
 * which Anthropic would continue, unless it asks for that by `prefix` or `partial`.
 */
export function toTurns(
  messages: readonly Json[],
): { system: JsonObject[]; turns: MessagesTurn[] } {
  const system: JsonObject[] = [];
  const turns: MessagesTurn[] = [];
  const namesOf = participants(messages);
  for (const [index, sent] of messages.entries()) {
    const at = `messages.${index}`;
    const message = requireObjectIn(sent, at);
    const role = roleOf(message);
    const content = cached(
      named(contentOf(message, { at, index, messages }), message, namesOf),
      message,
    );
    if (content.length === 0) continue;
    const last = turns.at(-1);
    if (role === "system") system.push(...content);
    else if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content });
  }
  requireAnswerable(messages);
  if (turns.length === 0) turns.push({ role: "user", content: system.splice(0) });
  if (turns[0]?.content.length === 0) {
    throw badRequest("messages", "'messages' must have a message with text.");
  }
  return { system, turns: withoutTrailingSpace(turns) };
}

/**
 * The content of a user's message or of instructions, after the name of who speaks where there are
 * several: Anthropic has no field for it.
 */
function named(
  blocks: JsonObject[],
  message: JsonObject,
  namesOf: ReturnType<typeof participants>,
): JsonObject[] {
  const name = spokenName(message, namesOf);
  if (name === null || blocks.length === 0) return blocks;
  const [first, ...rest] = blocks;
  return first?.type === "text"
    ? [{ ...first, text: `${name}: ${first.text}` }, ...rest]
    : [{ type: "text", text: `${name}:` }, ...blocks];
}

/** Anthropic refuses white space at the end of what it continues. */
function withoutTrailingSpace(turns: MessagesTurn[]): MessagesTurn[] {
  const last = turns.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== "assistant" || typeof block?.text !== "string") return turns;
  const trimmed = { ...block, text: block.text.trimEnd() };
  return [...turns.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), trimmed] }];
}

function roleOf({ role }: JsonObject): MessagesTurn["role"] | "system" {
  if (role === "assistant") return role;
  return role === "system" || role === "developer" ? "system" : "user";
}

/** Where a message stands. */
interface MessagePlace {
  at: string;
  index: number;
  messages: readonly Json[];
}

function contentOf(message: JsonObject, place: MessagePlace): JsonObject[] {
  const { at } = place;
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
      return assistantBlocks(message, place);
    case "tool":
      requireCarried(message, toolRules, `${at}.`);
      return [toolResult(message, at)];
    case "function":
      requireCarried(message, functionRules, `${at}.`);
      return [
        toolResult(
          { ...message, tool_call_id: legacyCallIdBefore(place.messages, place.index) },
          at,
        ),
      ];
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
function assistantBlocks(message: JsonObject, { at, index }: MessagePlace): JsonObject[] {
  const { content, refusal, thinking_blocks: thoughts, tool_calls: calls } = message;
  const { function_call: called } = message;
  const thinking = requireList(thoughts, `${at}.thinking_blocks`).filter(isObject).filter(
    isSignedThinking,
  );
  const said = toBlocks(content, `${at}.content`).filter((block) => isSaid(block, at));
  if (said.length === 0 && typeof refusal === "string" && refusal.trim() !== "") {
    said.push({ type: "text", text: refusal });
  }
  const within = `${at}.tool_calls`;
  const uses = requireList(calls, within).map((call, index) =>
    toToolUse(requireObjectIn(call, `${within}.${index}`), `${within}.${index}`)
  );
  if (isObject(called)) {
    uses.push(toToolUse({ id: legacyCallId(index), function: called }, `${at}.function_call`));
  }
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

function toToolUse(call: JsonObject, at: string): JsonObject {
  const { id, type = "function" } = call;
  if (type !== "function" && type !== "custom") throw notCarried(`${at}.type`);
  const { name, input } = type === "custom" ? customUse(call, at) : functionUse(call, at);
  return {
    type: "tool_use",
    id: toolUseId(requireString(id, `${at}.id`)),
    name: requireString(name, `${at}.${type}.name`),
    input,
  };
}

interface ToolUse {
  name: Json | undefined;
  input: JsonObject;
}

function functionUse({ function: called }: JsonObject, at: string): ToolUse {
  const { name, arguments: given } = requireObjectIn(called, `${at}.function`);
  const within = `${at}.function.arguments`;
  const input = isObject(given) ? given : parsedArguments(requireString(given ?? "", within));
  if (input === null) throw badRequest(within, `'${within}' must be a JSON object, as text.`);
  return { name, input };
}

function customUse({ custom }: JsonObject, at: string): ToolUse {
  const { name, input } = requireObjectIn(custom, `${at}.custom`);
  return { name, input: customArguments(requireString(input, `${at}.custom.input`)) };
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
