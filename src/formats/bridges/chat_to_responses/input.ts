import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import {
  fieldRules,
  isEmpty,
  isOneOf,
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
import { toParts } from "./content.ts";

const promptRules = fieldRules({ carried: "role content name", dropped: "cache_control" });
/** The call's id says which tool it is. */
const toolRules = fieldRules({
  carried: "role content tool_call_id",
  dropped: "name cache_control",
});
/**
 * Dropped is the name, since the model knows its own turns, reasoning, which only the server that
 * wrote it could read, and what servers add for the caller alone.
 */
const assistantRules = fieldRules({
  carried: "role content tool_calls function_call refusal",
  dropped: "name cache_control reasoning reasoning_content reasoning_details thinking " +
    "thinking_blocks annotations parsed provider_specific_fields",
  unless: { images: isEmpty, prefix: isOneOf(false), partial: isOneOf(false) },
});

/** Where a message stands. */
interface MessagePlace {
  at: string;
  index: number;
  messages: readonly Json[];
  /** Ids of the calls of custom tools so far, whose results are items of their own. */
  customIds: Set<string>;
}

/**
 * The messages of a chat as input items, in their order. Throws 400 for what responses cannot
 * carry: among others sound, and an assistant's message that is to be continued.
 */
export function toInput(messages: readonly Json[]): JsonObject[] {
  const namesOf = participants(messages);
  const customIds = new Set<string>();
  return messages.flatMap((sent, index) => {
    const at = `messages.${index}`;
    const message = requireObjectIn(sent, at);
    return toItems(message, { at, index, messages, customIds }, spokenName(message, namesOf));
  });
}

function toItems(message: JsonObject, place: MessagePlace, name: string | null): JsonObject[] {
  const { at } = place;
  const { role, content } = message;
  switch (role) {
    case "system":
    case "developer":
    case "user":
      requireCarried(message, promptRules, `${at}.`);
      return [{ role, content: named(toParts(content, `${at}.content`), name) }];
    case "assistant":
      requireCarried(message, assistantRules, `${at}.`);
      return assistantItems(message, place);
    case "tool":
      requireCarried(message, toolRules, `${at}.`);
      return [toOutput(message.tool_call_id, content, place)];
    case "function":
      requireCarried(message, promptRules, `${at}.`);
      return [toOutput(legacyCallIdBefore(place.messages, place.index), content, place)];
    default:
      throw notCarried(`${at}.role`);
  }
}

/** A content after the name of who says it: responses have no field for that. */
function named(content: Json, name: string | null): Json {
  if (name === null) return content;
  if (typeof content === "string") return `${name}: ${content}`;
  const label = { type: "input_text", text: `${name}:` };
  return Array.isArray(content) ? [label, ...content] : content;
}

function toOutput(
  id: Json | undefined,
  content: Json | undefined,
  place: MessagePlace,
): JsonObject {
  const { at, customIds } = place;
  const call_id = requireString(id, `${at}.tool_call_id`);
  const type = customIds.has(call_id) ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id, output: toParts(content, `${at}.content`) };
}

/** What the assistant said, and its calls. A message that says nothing is no item. */
function assistantItems(message: JsonObject, { at, index, customIds }: MessagePlace): JsonObject[] {
  const { content, refusal, tool_calls: calls, function_call: called } = message;
  const said = textOf(content, `${at}.content`) ||
    (typeof refusal === "string" ? refusal : "");
  const within = `${at}.tool_calls`;
  const items = requireList(calls, within).map((call, place) => {
    const item = toCall(requireObjectIn(call, `${within}.${place}`), `${within}.${place}`);
    if (item.type === "custom_tool_call") customIds.add(String(item.call_id));
    return item;
  });
  if (isObject(called)) {
    const legacy = { id: legacyCallId(index), function: called };
    items.push(toCall(legacy, `${at}.function_call`));
  }
  return said === "" ? items : [{ role: "assistant", content: said }, ...items];
}

/** The texts of an assistant's content, with what it refused to say; its thinking is left out. */
function textOf(content: Json | undefined, at: string): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) {
    throw badRequest(at, `'${at}' must be a string or an array of content parts.`);
  }
  return content.map((sent, index) => {
    const part = requireObjectIn(sent, `${at}.${index}`);
    switch (part.type) {
      case "text":
      case "output_text":
        return requireString(part.text, `${at}.${index}.text`);
      case "refusal":
        return requireString(part.refusal, `${at}.${index}.refusal`);
      case "thinking":
      case "redacted_thinking":
        return "";
      default:
        throw notCarried(`${at}.${index}.type`);
    }
  }).join("");
}

function toCall(call: JsonObject, at: string): JsonObject {
  const { id, type = "function" } = call;
  const call_id = requireString(id, `${at}.id`);
  if (type === "custom") {
    const { name, input } = requireObjectIn(call.custom, `${at}.custom`);
    return {
      type: "custom_tool_call",
      call_id,
      name: requireString(name, `${at}.custom.name`),
      input: requireString(input, `${at}.custom.input`),
    };
  }
  if (type !== "function") throw notCarried(`${at}.type`);
  const { name, arguments: given = "" } = requireObjectIn(call.function, `${at}.function`);
  return {
    type: "function_call",
    call_id,
    name: requireString(name, `${at}.function.name`),
    arguments: typeof given === "string" ? given : JSON.stringify(given),
  };
}
