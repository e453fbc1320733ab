import { badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { FittedRequest, ModelRequest, PriceCoverage } from "../../inference/model_request.ts";
import { toolName } from "../../pricing/usage_fields.ts";

/** Types of tools that the caller runs, and of searches among tools, which cost nothing. */
const callersTypes =
  /^(custom|function|(bash|text_editor|memory|computer|browser|tool_search)_.+)$/;

/** Tools whose calls the provider bounds by `max_uses`. */
const boundedTools = new Set(["web_search", "web_fetch", "advisor"]);

/** Whether a tool is defined by the request itself: a name, a description, a schema. */
export function isPlainTool(tool: Json): boolean {
  return isObject(tool) &&
    (tool.type === undefined || tool.type === null || tool.type === "custom");
}

/** Whether a tool runs at the provider. */
function isHosted(tool: Json): tool is JsonObject {
  return isObject(tool) && !isPlainTool(tool) &&
    !(typeof tool.type === "string" && callersTypes.test(tool.type));
}

/** The name of a hosted tool, as prices have it: `web_search` for `web_search_20250305`. */
function hostedName({ type }: JsonObject): string {
  const name = typeof type === "string" ? toolName(type) : "";
  if (name === "mcp_toolset") return "mcp";
  // It is shown in a header.
  return /^[\w.-]+$/.test(name) ? name : "unknown";
}

function toolsIn({ tools }: JsonObject): Json[] {
  return Array.isArray(tools) ? tools : [];
}

/** The names of a body's hosted tools; `mcp` for those of other servers. */
export function hostedToolsOf(body: JsonObject): string[] {
  const names = toolsIn(body).filter(isHosted).map(hostedName);
  return hasServers(body) && !names.includes("mcp") ? [...names, "mcp"] : names;
}

/** The most calls that `max_uses` allows; null where a tool has no bound. */
export function maxUsesOf(body: JsonObject): number | null {
  const uses = toolsIn(body).filter(isHosted).map(({ max_uses: uses }) => boundIn(uses));
  const isBounded = uses.length > 0 && !hasServers(body) && uses.every((most) => most !== null);
  return isBounded ? uses.reduce<number>((sum, most) => sum + (most ?? 0), 0) : null;
}

function hasServers({ mcp_servers: servers }: JsonObject): boolean {
  return Array.isArray(servers) ? servers.length > 0 : servers !== undefined && servers !== null;
}

function boundIn(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/**
 * Removes hosted tools that have no price, and bounds the calls of the others together by
 * `toolCallsMax`, which is what a hold covers. Throws 400 where `tool_choice` needs a removed one.
 */
export function fitToolsToPrice(
  request: ModelRequest,
  { covers, allowed, toolCallsMax }: {
    covers: PriceCoverage;
    allowed: readonly string[];
    toolCallsMax: number;
  },
): FittedRequest {
  const { body, extras } = request;
  if (extras.hostedTools.length === 0) return { request, removedTools: [] };
  const isAllowed = (name: string) =>
    covers.tool(name) || allowed.includes("tools") || allowed.includes(name) ||
    (name === "mcp" && allowed.includes("mcp_servers"));
  const removed: JsonObject[] = [];
  const kept = toolsIn(body).filter((tool) => {
    if (!isHosted(tool) || isAllowed(hostedName(tool))) return true;
    removed.push(tool);
    return false;
  });
  const bounded = boundUses(kept, toolCallsMax);
  const { tools: _tools, mcp_servers: servers, ...rest } = bodyWithChoice(body, {
    removed: [...removed, ...bounded.removed],
    left: bounded.tools.length,
  });
  const fitted: JsonObject = { ...rest };
  if (bounded.tools.length > 0) fitted.tools = bounded.tools;
  const removedTools = [...removed, ...bounded.removed].map(hostedName);
  if (hasServers(body) && servers !== undefined) {
    if (isAllowed("mcp")) fitted.mcp_servers = servers;
    else removedTools.push("mcp");
  }
  const hostedTools = hostedToolsOf(fitted);
  const fittedExtras = { ...extras, hostedTools, maxToolCalls: maxUsesOf(fitted) };
  return {
    request: { ...request, body: fitted, extras: fittedExtras },
    removedTools: [...new Set(removedTools)],
  };
}

/** Shares the calls that may be made among the tools; one without a share is removed. */
function boundUses(
  tools: readonly Json[],
  callsMax: number,
): { tools: Json[]; removed: JsonObject[] } {
  const isBounded = (tool: Json): tool is JsonObject =>
    isHosted(tool) && boundedTools.has(hostedName(tool));
  let left = callsMax;
  let waiting = tools.filter(isBounded).length;
  const removed: JsonObject[] = [];
  const bounded = tools.flatMap((tool) => {
    if (!isBounded(tool)) return [tool];
    const uses = Math.min(boundIn(tool.max_uses) ?? Infinity, Math.ceil(left / waiting));
    waiting--;
    left -= uses;
    if (uses > 0) return [{ ...tool, max_uses: uses }];
    removed.push(tool);
    return [];
  });
  return { tools: bounded, removed };
}

/** The body, its `tool_choice` only if a tool is left. Throws 400 where it needs a removed one. */
function bodyWithChoice(
  body: JsonObject,
  { removed, left }: { removed: readonly JsonObject[]; left: number },
): JsonObject {
  const { tool_choice: choice, ...rest } = body;
  if (removed.length === 0 || !isObject(choice)) return body;
  const isNamed = choice.type === "tool" && removed.some(({ name }) => name === choice.name);
  if (isNamed || (choice.type === "any" && left === 0)) {
    throw badRequest(
      "tool_choice",
      "'tool_choice' requires a tool that runs at the provider and has no price in this project: " +
        `${removed.map(hostedName).join(", ")}.`,
      "unsupported_parameter",
    );
  }
  return left === 0 ? rest : body;
}
