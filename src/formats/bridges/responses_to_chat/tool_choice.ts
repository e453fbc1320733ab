import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { notInChat } from "./not_in_chat.ts";
import type { BridgedTool, ToolTable } from "./tools.ts";

/**
 * `tools`, `tool_choice` and `parallel_tool_calls` of a chat request, whose servers refuse the
 * latter without the first. Throws 400 for a choice of a tool that is not among the tools.
 */
export function writeTools(body: JsonObject, table: ToolTable): JsonObject {
  const { tool_choice: choice, parallel_tool_calls: parallel } = body;
  const { tools, tool_choice } = readChoice(choice, [...table.byChatName.values()]);
  if (tools.length === 0) return {};
  return {
    tools: tools.map(({ definition }) => definition),
    ...(tool_choice === null ? {} : { tool_choice }),
    ...(typeof parallel === "boolean" ? { parallel_tool_calls: parallel } : {}),
  };
}

interface ChatToolChoice {
  tools: readonly BridgedTool[];
  tool_choice: Json;
}

const modes = new Set<unknown>(["auto", "none", "required"]);

function readChoice(choice: Json | undefined, tools: readonly BridgedTool[]): ChatToolChoice {
  if (choice === undefined || choice === null) return { tools, tool_choice: null };
  if (modes.has(choice)) {
    if (choice === "required" && tools.length === 0) {
      throw badRequest("tool_choice", "'tool_choice' is 'required', and there are no tools.");
    }
    return { tools, tool_choice: choice };
  }
  if (!isObject(choice)) throw notInChat("tool_choice", "this choice");
  if (choice.type === "allowed_tools") return readAllowed(choice, tools);
  const [tool] = namedTools(choice, { tools, param: "tool_choice" });
  return { tools, tool_choice: { type: "function", function: { name: tool?.chatName ?? "" } } };
}

/** Returns the tools that the model may call: it does not see the others. */
function readAllowed(
  { mode, tools: allowed }: JsonObject,
  tools: readonly BridgedTool[],
): ChatToolChoice {
  if (!Array.isArray(allowed) || (mode !== "auto" && mode !== "required")) {
    throw badRequest("tool_choice", "'tool_choice' must have a mode and a list of tools.");
  }
  const chosen = new Set(
    allowed.flatMap((each, index) =>
      namedTools(each, { tools, param: `tool_choice.tools.${index}` })
    ),
  );
  return { tools: tools.filter((tool) => chosen.has(tool)), tool_choice: mode };
}

/** The tool that a choice names, or all of the group that it names. Throws 400 for none. */
function namedTools(
  choice: Json,
  { tools, param }: { tools: readonly BridgedTool[]; param: string },
): BridgedTool[] {
  const { type, name, namespace = null } = isObject(choice) ? choice : {};
  if (type === "namespace") {
    const group = tools.filter((tool) => tool.namespace === name);
    if (group.length > 0) return group;
  } else if (type !== "function" && type !== "custom") {
    throw notInChat(param, "a choice of a tool that the caller does not run");
  }
  const named = tools.filter((tool) => tool.name === name && tool.kind === type);
  const tool = named.find((each) => each.namespace === namespace) ??
    (namespace === null ? named[0] : undefined);
  if (!tool) throw badRequest(param, `'${param}' names a tool that is not in 'tools'.`);
  return [tool];
}
