import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import type { Prefill } from "../../../projects/providers.ts";
import { notCarried, requireList, requireObjectIn, requireString } from "../carried_fields.ts";
import { withReasoningOfCalls } from "../chat_reasoning.ts";
import { toChatParts } from "./content.ts";
import { ownThinking } from "./written.ts";

/** Separates the text blocks of a turn where they become one text. */
const betweenBlocks = "\n\n";

/**
 * The system prompt and the turns of a request as chat messages. Throws 400 for what chat cannot
 * carry: among others an assistant's turn at the end, where the server is not known to continue it.
 */
export function toChatMessages(
  { system, messages }: JsonObject,
  prefill: Prefill | null,
): JsonObject[] {
  const written: JsonObject[] = [];
  const prompt = system === undefined || system === null ? "" : textOf(system, "system");
  if (prompt !== "") written.push({ role: "system", content: prompt });
  const turns = requireList(messages, "messages");
  const asked = turns.findLastIndex(isQuestion);
  for (const [index, turn] of turns.entries()) {
    const at = `messages.${index}`;
    const { role, content } = requireObjectIn(turn, at);
    const isLast = index === turns.length - 1;
    const isAnswering = index > asked;
    written.push(...toMessages(role, content, { at, isLast, isAnswering, prefill }));
  }
  return withReasoningOfCalls(written);
}

/** Whether a turn is the user's own, and not the results of an answer's calls. */
function isQuestion(turn: Json): boolean {
  if (!isObject(turn) || turn.role !== "user") return false;
  const { content } = turn;
  const isResult = (block: Json) => isObject(block) && block.type === "tool_result";
  return !Array.isArray(content) || !content.some(isResult);
}

interface TurnPlace {
  at: string;
  isLast: boolean;
  /** Whether the turn belongs to the answer that is being given. */
  isAnswering: boolean;
  prefill: Prefill | null;
}

function toMessages(
  role: Json | undefined,
  content: Json | undefined,
  { at, isLast, isAnswering, prefill }: TurnPlace,
): JsonObject[] {
  const within = `${at}.content`;
  switch (role) {
    case "system":
      return [{ role: "system", content: textOf(content, within) }];
    case "assistant":
      if (isLast) return [begunMessage(content, { at, prefill })];
      return assistantMessages(content, { at: within, isAnswering });
    case "user":
      return typeof content === "string"
        ? [{ role: "user", content }]
        : userMessages(blocksOf(content, within), within);
    default:
      throw badRequest(`${at}.role`, `'${at}.role' must be user, assistant or system.`);
  }
}

function blocksOf(content: Json | undefined, at: string): JsonObject[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) {
    throw badRequest(at, `'${at}' must be a string or an array of content blocks.`);
  }
  return content.map((block, index) => requireObjectIn(block, `${at}.${index}`));
}

/** A text, or the text of blocks that are nothing else. */
function textOf(content: Json | undefined, at: string): string {
  return blocksOf(content, at).map((block, index) => {
    if (block.type !== "text") throw notCarried(`${at}.${index}.type`);
    return requireString(block.text, `${at}.${index}.text`);
  }).filter((text) => text !== "").join(betweenBlocks);
}

/**
 * A user's turn: a message for each result of a tool, as chat wants them right after the calls, and
 * one with the rest.
 */
function userMessages(blocks: readonly JsonObject[], at: string): JsonObject[] {
  const results: JsonObject[] = [];
  const shown: JsonObject[] = [];
  const parts: JsonObject[] = [];
  for (const [index, block] of blocks.entries()) {
    const within = `${at}.${index}`;
    if (block.type === "tool_result") {
      const { message, media } = readToolResult(block, within);
      results.push(message);
      shown.push(...media);
    } else parts.push(...toChatParts(block, within));
  }
  const all = [...shown, ...parts];
  return all.length > 0 ? [...results, { role: "user", content: contentOf(all) }] : results;
}

/** Parts that are text alone become one text: templates of many models take nothing else. */
function contentOf(parts: JsonObject[]): Json {
  const texts = parts.map(({ type, text }) => (type === "text" ? text : null));
  const isText = (text: Json | undefined): text is string => typeof text === "string";
  return texts.every(isText) ? texts.join(betweenBlocks) : parts;
}

/**
 * A tool message, which is text: a result that is an error says so at its beginning. Images and
 * files of a result follow in the user's message, after the id of their call.
 */
function readToolResult(
  { tool_use_id: id, content, is_error: isError }: JsonObject,
  at: string,
): { message: JsonObject; media: JsonObject[] } {
  const called = requireString(id, `${at}.tool_use_id`);
  const blocks = content === undefined || content === null
    ? []
    : blocksOf(content, `${at}.content`);
  const parts = blocks.flatMap((block, index) => toChatParts(block, `${at}.content.${index}`));
  const isText = ({ type }: JsonObject) => type === "text";
  const text = parts.filter(isText).map(({ text }) => text).join(betweenBlocks);
  const media = parts.filter((part) => !isText(part));
  const message = {
    role: "tool",
    tool_call_id: called,
    content: isError === true ? `Error: ${text}` : text,
  };
  const label = { type: "text", text: `[result of ${called}]` };
  return { message, media: media.length > 0 ? [label, ...media] : [] };
}

/**
 * An assistant's turn. A chat server gets its own thinking back while it answers, and in every turn
 * that calls tools; other thinking is left out, as Anthropic leaves it out of earlier turns. A turn
 * that says nothing is no message.
 */
function assistantMessages(
  content: Json | undefined,
  { at, isAnswering }: { at: string; isAnswering: boolean },
): JsonObject[] {
  let text = "";
  const calls: JsonObject[] = [];
  const thinking: Record<string, string> = {};
  for (const [index, block] of blocksOf(content, at).entries()) {
    const within = `${at}.${index}`;
    switch (block.type) {
      case "text":
        text += requireString(block.text, `${within}.text`);
        break;
      case "tool_use":
        calls.push(toCall(block, within));
        break;
      case "thinking": {
        const own = ownThinking(block);
        if (own) thinking[own.field] = (thinking[own.field] ?? "") + own.text;
        break;
      }
      case "redacted_thinking":
        break;
      default:
        throw notCarried(`${within}.type`);
    }
  }
  if (text === "" && calls.length === 0) return [];
  const said = text === "" ? null : text;
  const called = calls.length > 0 ? { tool_calls: calls } : {};
  const given = isAnswering || calls.length > 0 ? thinking : {};
  return [{ role: "assistant", content: said, ...given, ...called }];
}

/** An assistant's text that the server continues. Throws 400 where it cannot. */
function begunMessage(
  content: Json | undefined,
  { at, prefill }: Pick<TurnPlace, "at" | "prefill">,
): JsonObject {
  const within = `${at}.content`;
  const [message] = assistantMessages(content, { at: within, isAnswering: false });
  if (prefill === null || !message || message.tool_calls) throw notCarried(`${at}.role`);
  return prefill === "prefix" ? { ...message, prefix: true } : message;
}

function toCall({ id, name, input }: JsonObject, at: string): JsonObject {
  return {
    id: requireString(id, `${at}.id`),
    type: "function",
    function: {
      name: requireString(name, `${at}.name`),
      arguments: JSON.stringify(isObject(input) ? input : {}),
    },
  };
}
