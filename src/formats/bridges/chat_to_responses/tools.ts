import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import {
  fieldRules,
  notCarried,
  requireCarried,
  requireList,
  requireObjectIn,
  requireString,
} from "../carried_fields.ts";

const toolRules = fieldRules({ carried: "type function custom", dropped: "cache_control" });
const functionRules = fieldRules({ carried: "name description parameters strict" });
const customRules = fieldRules({ carried: "name description format" });

/**
 * `tools`, `tool_choice` and `parallel_tool_calls` of a request for responses. Functions of the
 * older form are tools of which the model calls one. Throws 400 for a tool that the caller does not
 * run.
 */
export function writeResponsesTools(body: JsonObject): JsonObject {
  const sent = requireList(body.tools, "tools");
  const functions = requireList(body.functions, "functions");
  if (sent.length > 0 && functions.length > 0) throw notCarried("functions");
  const isLegacy = functions.length > 0;
  const tools = isLegacy
    ? functions.map((called, index) => toFunctionTool(called, `functions.${index}`))
    : sent.map(toTool);
  if (tools.length === 0) return {};
  const { function_call: called, tool_choice: chosen, parallel_tool_calls: parallel } = body;
  const choice = isLegacy ? legacyChoice(called) : toChoice(chosen);
  return {
    tools,
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(isLegacy || parallel === false
      ? { parallel_tool_calls: false }
      : typeof parallel === "boolean"
      ? { parallel_tool_calls: parallel }
      : {}),
  };
}

function toTool(tool: Json, index: number): JsonObject {
  const at = `tools.${index}`;
  const sent = requireObjectIn(tool, at);
  const { type = "function" } = sent;
  if (type !== "function" && type !== "custom") throw notCarried(`${at}.type`);
  requireCarried(sent, toolRules, `${at}.`);
  return type === "custom"
    ? toCustomTool(sent.custom, `${at}.custom`)
    : toFunctionTool(sent.function, `${at}.function`);
}

/** A function, which is strict only where chat says so: responses take it for strict else. */
function toFunctionTool(sent: Json | undefined, at: string): JsonObject {
  const called = requireObjectIn(sent, at);
  requireCarried(called, functionRules, `${at}.`);
  const { name, description, parameters, strict } = called;
  return {
    type: "function",
    name: requireString(name, `${at}.name`),
    ...(typeof description === "string" ? { description } : {}),
    parameters: isObject(parameters) ? parameters : { type: "object", properties: {} },
    strict: strict === true,
  };
}

function toCustomTool(sent: Json | undefined, at: string): JsonObject {
  const custom = requireObjectIn(sent, at);
  requireCarried(custom, customRules, `${at}.`);
  const { name, description, format } = custom;
  return {
    type: "custom",
    name: requireString(name, `${at}.name`),
    ...(typeof description === "string" ? { description } : {}),
    ...(isObject(format) ? { format: toCustomFormat(format, `${at}.format`) } : {}),
  };
}

/** Chat has a grammar's parts in a member of their own. */
function toCustomFormat(format: JsonObject, at: string): JsonObject {
  const { type, grammar } = format;
  if (type !== "grammar") return format;
  return isObject(grammar) ? { type, ...requireObjectIn(grammar, `${at}.grammar`) } : format;
}

function legacyChoice(choice: Json | undefined): Json | undefined {
  return isObject(choice) ? { type: "function", name: choice.name ?? "" } : choice ?? undefined;
}

function toChoice(choice: Json | undefined): Json | undefined {
  if (!isObject(choice)) return choice ?? undefined;
  if (choice.type !== "allowed_tools") return named(choice, "tool_choice");
  const { mode, tools } = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
  const at = "tool_choice.allowed_tools.tools";
  const allowed = requireList(tools, at).map((tool, index) =>
    named(requireObjectIn(tool, `${at}.${index}`), `${at}.${index}`)
  );
  return { type: "allowed_tools", mode: mode ?? "auto", tools: allowed };
}

/** A tool by its name, which chat has in a member of the tool's type. */
function named(choice: JsonObject, at: string): JsonObject {
  const { type } = choice;
  if (type !== "function" && type !== "custom") throw notCarried(at);
  const called = choice[type];
  const name = isObject(called) ? called.name : choice.name;
  return { type, name: requireString(name, `${at}.${type}.name`) };
}
