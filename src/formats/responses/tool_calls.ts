import { isObject, type Json, type JsonObject, ownMember } from "../../base/json.ts";
import { toolName } from "../../pricing/usage_fields.ts";
import { usageIn } from "../openai/usage.ts";

/** Names of tools at the provider, by the type of the items that their calls are. */
const toolsByItem = new Map<unknown, string>(Object.entries({
  web_search_call: "web_search",
  file_search_call: "file_search",
  code_interpreter_call: "code_interpreter",
  image_generation_call: "image_generation",
  mcp_call: "mcp",
  program: "programmatic_tool_calling",
}));

/** Counts the calls of tools at the provider among the items of one response. */
export class ToolCallCount {
  readonly #calls: Record<string, number> = {};
  readonly #containers = new Set<string>();

  /** Calls so far, by the tool's name. */
  get calls(): Readonly<Record<string, number>> {
    return this.#calls;
  }

  /** Counts an item that is complete. Returns whether it is such a call. */
  add(item: JsonObject): boolean {
    const name = toolOf(item);
    if (name === null || !this.#isBilled(item)) return false;
    this.#calls[name] = (ownMember(this.#calls, name) ?? 0) + 1;
    return true;
  }

  /** Searches are billed, not what is done with their results; containers once for each. */
  #isBilled({ type, action, container_id: container, environment }: JsonObject): boolean {
    if (type === "web_search_call") {
      return !isObject(action) || (action.type ?? "search") === "search";
    }
    const id = isObject(environment) ? environment.container_id : container;
    if (typeof id !== "string") return true;
    const isNew = !this.#containers.has(id);
    this.#containers.add(id);
    return isNew;
  }
}

function toolOf({ type, environment }: JsonObject): string | null {
  // A shell without a container is the caller's.
  if (type === "shell_call") {
    return isObject(environment) && environment.container_id !== undefined ? "shell" : null;
  }
  return toolsByItem.get(type) ?? null;
}

/**
 * The usage of a response with the calls of tools as the meter reads them: as the upstream reports
 * them beside it, and as they were counted for tools that it does not report.
 */
export function usageWithTools(
  response: JsonObject,
  calls: Readonly<Record<string, number>>,
): JsonObject | undefined {
  const usage = usageIn(response);
  const reported = reportedTools(response.tool_usage);
  const names = new Set(Object.keys(reported).map(toolName));
  const unreported = Object.entries(calls).filter(([name]) => !names.has(name));
  const tools = { ...reported, ...Object.fromEntries(unreported) };
  return Object.keys(tools).length > 0 ? { ...usage, tool_usage: tools } : usage;
}

function reportedTools(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
