import { badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import { toolName } from "../../pricing/usage_fields.ts";

// Which tools of a request run at the provider, which bills them.

/** Types of tools that the caller runs, or that cost only tokens. */
const callersTypes = new Set<unknown>([
  ...["function", "custom", "local_shell", "apply_patch", "tool_search"],
  ...["computer", "computer_use", "computer_use_preview"],
]);

/** The name by which a price covers a tool that runs at the provider; null for the caller's. */
export function hostedName(tool: JsonObject): string | null {
  const { type, environment } = tool;
  if (callersTypes.has(type)) return null;
  if (type === "shell") return isLocal(environment) ? null : "shell";
  // Its tools are looked at one by one.
  if (type === "namespace" && Array.isArray(tool.tools)) return null;
  return toolName(plainText(type));
}

/** Whether a shell runs at the caller: without an environment, OpenAI leaves it to them. */
function isLocal(environment: Json | undefined): boolean {
  return environment === undefined || environment === null ||
    (isObject(environment) && environment.type === "local");
}

/** Names of the tools of a list that run at the provider, those within namespaces included. */
export function hostedNames(tools: readonly Json[]): string[] {
  return tools.filter(isObject).flatMap((tool) => {
    const name = hostedName(tool);
    if (name !== null) return [name];
    return tool.type === "namespace" && Array.isArray(tool.tools) ? hostedNames(tool.tools) : [];
  });
}

/** Items may bring tools too: `additional_tools`, and what a search for tools has found. */
export function toolsOfItem({ type, tools }: JsonObject): Json[] | null {
  // The list of an MCP server's tools has been made by the provider before.
  return Array.isArray(tools) && type !== "mcp_list_tools" ? tools : null;
}

const toolType = /^[\x21-\x7e]{1,64}$/;

/** Throws 400 for a list of tools with something that is no tool. `at` is the list's place. */
export function requireTools(tools: readonly Json[], at: string): void {
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool)) {
      throw badRequest(`${at}.${index}`, `'${at}.${index}' must be an object.`);
    }
    if (typeof tool.type !== "string" || !toolType.test(tool.type)) {
      throw badRequest(
        `${at}.${index}.type`,
        `'${at}.${index}.type' must be a string of 1 to 64 visible ASCII characters.`,
      );
    }
    if (tool.type === "namespace" && Array.isArray(tool.tools)) {
      requireTools(tool.tools, `${at}.${index}.tools`);
    }
  }
}
