import { badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";
import type { FittedRequest, ModelRequest, PriceCoverage } from "../../inference/model_request.ts";
import { toolName } from "../../pricing/usage_fields.ts";
import { requirePricedFields } from "../openai/fields.ts";
import { requireNothingStored } from "../openai/stored_things.ts";
import { hostedName, hostedNames, toolsOfItem } from "./hosted_tools.ts";

/**
 * Removes tools that run at the provider and have no price, and bounds the calls of the others.
 * Throws 400 where the request insists on a tool that is removed.
 */
export function fitTools(
  request: ModelRequest,
  { covers, allowed, toolCallsMax }: {
    covers: PriceCoverage;
    allowed: readonly string[];
    toolCallsMax: number;
  },
): FittedRequest {
  const { extras } = request;
  if (extras.hostedTools.length === 0) return { request, removedTools: [] };
  const fitting = new Fitting(covers, allowed);
  const body = fitting.fitBody(request.body);
  const removedTools = [...fitting.removed];
  const { kept } = fitting;
  const maxToolCalls = kept.length > 0
    ? Math.min(extras.maxToolCalls ?? toolCallsMax, toolCallsMax)
    : null;
  if (maxToolCalls !== null) body.max_tool_calls = maxToolCalls;
  const structured = request.structured && (request.requiresJson || hasTools(body));
  const fitted = {
    ...request,
    body,
    structured,
    extras: { ...extras, hostedTools: kept, maxToolCalls },
  };
  return { request: fitted, removedTools };
}

/** Throws 400 for fields that cost what no price covers; tools have been fitted before. */
export function requirePricedResponse(
  request: ModelRequest,
  covers: PriceCoverage,
  allowed: readonly string[],
): void {
  const { tools: _fitted, ...body } = request.body;
  requirePricedFields({ ...request, body }, covers, allowed);
}

function hasTools({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.length > 0;
}

/** Goes through the tools of one request. */
class Fitting {
  /** Names of tools that were removed, each once. */
  readonly removed = new Set<string>();
  /** Names of the tools at the provider that are left. */
  readonly kept: string[] = [];
  readonly #covers: PriceCoverage;
  readonly #allowed: readonly string[];

  constructor(covers: PriceCoverage, allowed: readonly string[]) {
    this.#covers = covers;
    this.#allowed = allowed;
  }

  fitBody(body: JsonObject): JsonObject {
    const { tools, tool_choice: choice, input, ...rest } = body;
    const fitted = Array.isArray(tools) ? this.#fitList(tools, "tools") : null;
    const items = Array.isArray(input) ? input.map((item, at) => this.#fitItem(item, at)) : input;
    const isEmptied = fitted?.length === 0 && this.removed.size > 0;
    this.#requireChoice(choice, isEmptied);
    // Without tools, OpenAI refuses a list of them, and a choice among them.
    const isChoiceVoid = choice === undefined || (isEmptied && !isObject(choice));
    return {
      ...rest,
      ...(items === undefined ? {} : { input: items }),
      ...(fitted && !isEmptied ? { tools: fitted } : {}),
      ...(isChoiceVoid ? {} : { tool_choice: choice }),
    };
  }

  #fitItem(item: Json, at: number): Json {
    const tools = isObject(item) ? toolsOfItem(item) : null;
    if (!isObject(item) || tools === null || hostedNames(tools).length === 0) return item;
    return { ...item, tools: this.#fitList(tools, `input.${at}.tools`) };
  }

  #fitList(tools: readonly Json[], at: string): Json[] {
    return tools.flatMap((tool, index) => {
      if (!isObject(tool)) return [];
      const name = hostedName(tool);
      if (name !== null) return this.#keeps(name, tool, `${at}.${index}`) ? [tool] : [];
      if (tool.type !== "namespace" || !Array.isArray(tool.tools)) return [tool];
      if (hostedNames(tool.tools).length === 0) return [tool];
      const within = this.#fitList(tool.tools, `${at}.${index}.tools`);
      return within.length > 0 ? [{ ...tool, tools: within }] : [];
    });
  }

  #keeps(name: string, tool: JsonObject, at: string): boolean {
    if (!this.#covers.tool(name) && !this.#allowed.includes("tools")) {
      this.removed.add(name);
      return false;
    }
    requireNothingStored(tool, { at, allowed: this.#allowed });
    this.kept.push(name);
    return true;
  }

  #requireChoice(choice: Json | undefined, isEmptied: boolean): void {
    if (choice === "required" && isEmptied) throw unpricedChoice([...this.removed].join("', '"));
    if (!isObject(choice)) return;
    const chosen = Array.isArray(choice.tools) ? choice.tools.filter(isObject) : [choice];
    for (const { type } of chosen) {
      const name = toolName(plainText(type));
      if (this.removed.has(name) && !this.kept.includes(name)) throw unpricedChoice(name);
    }
  }
}

function unpricedChoice(names: string) {
  return badRequest(
    "tool_choice",
    `'tool_choice' asks for '${names}', which runs at the provider and has no price in this ` +
      "project.",
    "unsupported_parameter",
  );
}
