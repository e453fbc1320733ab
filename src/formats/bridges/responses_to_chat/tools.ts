import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { customParameters, grammarText } from "../custom_tool.ts";
import { notInChat, typeName } from "./not_in_chat.ts";

/** A tool that the caller runs, and the chat function that stands for it. */
export interface BridgedTool {
  kind: "function" | "custom";
  name: string;
  /** The group that the tool is in; null for a tool on its own. */
  namespace: string | null;
  /** The tool's name at the upstream, where there are no groups. */
  chatName: string;
  definition: JsonObject;
}

/** The tools of a request. */
export interface ToolTable {
  byChatName: ReadonlyMap<string, BridgedTool>;
  /** Names upstream, by a tool's own name and group. */
  chatNames: ReadonlyMap<string, string>;
}

/** The longest name that chat servers accept, in characters. */
const chatNameMax = 64;
/** How many characters are cut off a name for a number that makes it unique. */
const numberChars = 4;

/**
 * Reads the tools of a request. Chat servers know functions only: groups are flattened, and a
 * custom tool becomes a function of one text. Throws 400 for tools that the caller does not run.
 */
export function readTools({ tools }: JsonObject): ToolTable {
  const table = new ToolReader();
  if (tools === undefined || tools === null) return table;
  if (!Array.isArray(tools)) throw badRequest("tools", "'tools' must be a list.");
  for (const [index, tool] of tools.entries()) {
    const param = `tools.${index}`;
    if (isObject(tool) && tool.type === "namespace") table.addNamespace(tool, param);
    else table.add(tool, { namespace: null, about: "", param });
  }
  return table;
}

/** The name upstream of a tool that an earlier call names, be it among the tools or not. */
export function chatNameOf({ chatNames }: ToolTable, tool: ToolName): string {
  return chatNames.get(keyOf(tool)) ?? flatName(tool);
}

type ToolName = Pick<BridgedTool, "name" | "namespace">;

interface ToolPlace {
  namespace: string | null;
  /** The description of the group, for its first tool. */
  about: string;
  param: string;
}

class ToolReader implements ToolTable {
  readonly byChatName = new Map<string, BridgedTool>();
  readonly chatNames = new Map<string, string>();
  /** The last number that a name got. */
  readonly #numbers = new Map<string, number>();

  /** A group's description stands before that of its first tool: there is no other place. */
  addNamespace({ name, tools, description }: JsonObject, param: string): void {
    if (typeof name !== "string" || !Array.isArray(tools)) {
      throw badRequest(param, `'${param}' must have a name and a list of tools.`);
    }
    for (const [index, tool] of tools.entries()) {
      const about = index === 0 && typeof description === "string" ? description : "";
      this.add(tool, { namespace: name, about, param: `${param}.tools.${index}` });
    }
  }

  add(tool: Json, { namespace, about, param }: ToolPlace): void {
    const { type, name } = isObject(tool) ? tool : {};
    if (!isObject(tool) || (type !== "function" && type !== "custom")) {
      throw notInChat(`${param}.type`, `a tool of the type '${typeName(type)}'`);
    }
    if (typeof name !== "string" || name === "") {
      throw badRequest(`${param}.name`, `'${param}.name' must be a text.`);
    }
    requirePlain(tool, param);
    const chatName = this.#freeName(flatName({ name, namespace }));
    const { texts, fields } = type === "custom" ? customParts(tool, param) : functionParts(tool);
    const text = [about, ...texts].filter((part) => part !== "").join("\n\n");
    const called = { name: chatName, ...(text === "" ? {} : { description: text }), ...fields };
    const definition = { type: "function", function: called };
    this.byChatName.set(chatName, { kind: type, name, namespace, chatName, definition });
    const key = keyOf({ name, namespace });
    if (!this.chatNames.has(key)) this.chatNames.set(key, chatName);
  }

  /** The name, or one that begins like it where another tool has it; the same in every request. */
  #freeName(name: string): string {
    let free = name;
    while (this.byChatName.has(free)) {
      const number = (this.#numbers.get(name) ?? 1) + 1;
      this.#numbers.set(name, number);
      free = `${name.slice(0, chatNameMax - numberChars)}_${number}`;
    }
    return free;
  }
}

function keyOf({ name, namespace }: ToolName): string {
  return JSON.stringify([namespace, name]);
}

function flatName({ name, namespace }: ToolName): string {
  return namespace === null ? name : `${namespace}__${name}`.slice(0, chatNameMax);
}

/** Throws 400 for a tool that only other tools call, that is loaded later, or runs on its own. */
function requirePlain(tool: JsonObject, param: string): void {
  const { allowed_callers: callers, defer_loading: isDeferred, async: isAsync } = tool;
  if (isDeferred === true) throw notInChat(`${param}.defer_loading`, "a tool that is loaded later");
  if (isAsync === true) throw notInChat(`${param}.async`, "a tool that runs on its own");
  if (Array.isArray(callers) && !callers.includes("direct")) {
    throw notInChat(`${param}.allowed_callers`, "a tool that the model does not call itself");
  }
}

interface ToolParts {
  /** Paragraphs of the description. */
  texts: string[];
  fields: JsonObject;
}

/** `strict` is written only where it is set: chat servers take a tool without it as not strict. */
function functionParts({ description, parameters, strict }: JsonObject): ToolParts {
  return {
    texts: typeof description === "string" ? [description] : [],
    fields: {
      ...(isObject(parameters) ? { parameters } : {}),
      ...(strict === true ? { strict } : {}),
    },
  };
}

function customParts({ description, format }: JsonObject, param: string): ToolParts {
  const grammar = grammarText(format);
  if (grammar === null) throw notInChat(`${param}.format`, "this format");
  const texts = typeof description === "string" ? [description] : [];
  return { texts: [...texts, grammar], fields: { parameters: customParameters } };
}
