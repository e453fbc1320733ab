import { type ApiError, badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import {
  fieldRules,
  notCarried,
  requireCarried,
  requireList,
  requireObjectIn,
  requireString,
} from "../carried_fields.ts";
import { customInput, customParameters, grammarText } from "../custom_tool.ts";

const toolRules = fieldRules({ carried: "type function custom cache_control" });
const functionRules = fieldRules({ carried: "name description parameters strict" });
const customRules = fieldRules({ carried: "name description format" });

/**
 * `tools` and `tool_choice` of a request for messages. Functions of the older form are tools of
 * which the model calls one. Throws 400 for a tool that the caller does not run, and for a choice
 * of a tool that is not there.
 */
export function writeMessagesTools(body: JsonObject): JsonObject {
  const sent = requireList(body.tools, "tools");
  const functions = requireList(body.functions, "functions");
  if (sent.length > 0 && functions.length > 0) throw notCarried("functions");
  const tools = functions.length > 0
    ? functions.map((called, index) => toFunctionTool(called, `functions.${index}`))
    : sent.map(toMessagesTool);
  if (tools.length === 0) return {};
  const choice = functions.length > 0 ? legacyChoice(body.function_call) : body.tool_choice;
  const isAlone = functions.length > 0 || body.parallel_tool_calls === false;
  return chosenTools(choice, { tools, alone: isAlone ? { disable_parallel_tool_use: true } : {} });
}

/** Throws 400 for a tool that runs at a provider. */
function toMessagesTool(tool: Json, index: number): JsonObject {
  const at = `tools.${index}`;
  const sent = requireObjectIn(tool, at);
  const { type = "function", cache_control: cache } = sent;
  if (type !== "function" && type !== "custom") throw notCarried(`${at}.type`);
  requireCarried(sent, toolRules, `${at}.`);
  const written = type === "custom"
    ? toCustomTool(sent.custom, `${at}.custom`)
    : toFunctionTool(sent.function, `${at}.function`);
  return isObject(cache) ? { ...written, cache_control: cache } : written;
}

function toFunctionTool(sent: Json | undefined, at: string): JsonObject {
  const called = requireObjectIn(sent, at);
  requireCarried(called, functionRules, `${at}.`);
  const { name, description, parameters, strict } = called;
  return {
    name: requireString(name, `${at}.name`),
    ...(typeof description === "string" ? { description } : {}),
    input_schema: { type: "object", ...(isObject(parameters) ? parameters : {}) },
    ...(strict === true ? { strict } : {}),
  };
}

function toCustomTool(sent: Json | undefined, at: string): JsonObject {
  const custom = requireObjectIn(sent, at);
  requireCarried(custom, customRules, `${at}.`);
  const { name, description, format } = custom;
  const grammar = grammarText(format);
  if (grammar === null) throw notCarried(`${at}.format`);
  const texts = [description, grammar].filter((text) => typeof text === "string" && text !== "");
  return {
    name: requireString(name, `${at}.name`),
    ...(texts.length > 0 ? { description: texts.join("\n\n") } : {}),
    input_schema: customParameters,
  };
}

function legacyChoice(choice: Json | undefined): Json | undefined {
  return isObject(choice) ? { type: "function", function: choice } : choice;
}

interface MessagesTools {
  tools: JsonObject[];
  /** Whether the model may call several tools at once. */
  alone: JsonObject;
}

function chosenTools(choice: Json | undefined, { tools, alone }: MessagesTools): JsonObject {
  if (isObject(choice) && choice.type === "allowed_tools") {
    const { mode, tools: listed } = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    if (mode !== "auto" && mode !== "required") {
      throw badRequest("tool_choice", "'tool_choice' must have the mode auto or required.");
    }
    const names = requireList(listed, "tool_choice.allowed_tools.tools").map(nameOfChoice);
    const allowed = tools.filter(({ name }) => names.includes(name));
    if (names.some((name) => !tools.some((tool) => tool.name === name))) throw notATool();
    return { tools: allowed, tool_choice: toChoice(mode, alone) };
  }
  const made = toChoice(choice, alone);
  if (made?.type === "tool" && !tools.some(({ name }) => name === made.name)) throw notATool();
  return { tools, ...(made ? { tool_choice: made } : {}) };
}

function notATool(): ApiError {
  return badRequest("tool_choice", "'tool_choice' names a tool that is not in 'tools'.");
}

/** Null where the model decides, as without a choice. */
function toChoice(choice: Json | undefined, alone: JsonObject): JsonObject | null {
  switch (choice) {
    case undefined:
    case null:
      return "disable_parallel_tool_use" in alone ? { type: "auto", ...alone } : null;
    case "none":
      return { type: "none" };
    case "auto":
      return { type: "auto", ...alone };
    case "required":
    case "any":
      return { type: "any", ...alone };
  }
  const name = nameOfChoice(choice);
  if (typeof name !== "string") throw notCarried("tool_choice");
  return { type: "tool", name, ...alone };
}

/** The name of the tool that a choice is; chat has it in a member of the tool's type. */
function nameOfChoice(choice: Json): Json | undefined {
  if (!isObject(choice) || (choice.type !== "function" && choice.type !== "custom")) return;
  const called = choice[choice.type];
  return isObject(called) ? called.name : choice.name;
}

/** How the caller reads the calls of a response. */
export interface CallForm {
  /** The one call is the message's own `function_call`. */
  isLegacy: boolean;
  /** Whether a tool is custom: its input is a text. */
  isCustom(name: string): boolean;
}

/** The form of calls that a request asks for. */
export function callFormOf({ tools, functions }: JsonObject): CallForm {
  const custom = new Set<Json | undefined>();
  for (const tool of Array.isArray(tools) ? tools : []) {
    if (isObject(tool) && tool.type === "custom" && isObject(tool.custom)) {
      custom.add(tool.custom.name);
    }
  }
  const isLegacy = Array.isArray(functions) && functions.length > 0;
  return { isLegacy, isCustom: (name) => custom.has(name) };
}

/** A call of a custom tool, from the arguments of the function that stood for it. */
export function customCall(name: string, written: string): JsonObject {
  return { type: "custom", custom: { name, input: customInput(written) } };
}
