import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { thinkingBudgetMax } from "../../base/limits.ts";

/** Whether a field of any vendor asks for reasoning, or has the prompt's template ask for it. */
export function asksReasoning(body: JsonObject): boolean {
  return placesOf(body).some((place) =>
    switches.some((field) => isOn(place[field])) || place.prompt_mode === "reasoning" ||
    budgetOf(place) !== 0 || isGoogleOn(googleConfig(place))
  );
}

/** The most tokens that the caller lets the model think for; null where no field bounds them. */
export function thinkingBudget(body: JsonObject): number | null {
  const budgets = placesOf(body).flatMap((place) => [
    isOn(place.thinking) ? tokensIn(place.thinking, "budget_tokens") : 0,
    isOn(place.reasoning) ? tokensIn(place.reasoning, "max_tokens") : 0,
    budgetOf(place),
    tokensIn(googleConfig(place), "thinking_budget"),
  ]);
  const largest = Math.max(...budgets);
  return largest > 0 ? largest : null;
}

/**
 * The objects that may have fields about reasoning: the body, `extra_body`, which some servers
 * merge into it, and the parameters of the prompt's template.
 */
function placesOf(body: JsonObject): JsonObject[] {
  const { extra_body: extra } = body;
  const merged = isObject(extra) ? [extra, extra.chat_template_kwargs] : [];
  return [body, body.chat_template_kwargs, ...merged].filter(isObject);
}

const switches = "reasoning_effort reasoning thinking include_reasoning enable_thinking think"
  .split(" ");

const offValues = new Set<unknown>([undefined, null, false, 0, "", "none", "off", "disabled"]);

/**
 * Whether an option is on. Off are `false`, `"none"`, `{type: "disabled"}`, `{enabled: false}`,
 * `{effort: "none"}` and a budget of zero. Templates take any other value as true.
 */
function isOn(option: Json | undefined): boolean {
  if (!isObject(option)) return !offValues.has(option);
  return option.type !== "disabled" && option.enabled !== false && option.effort !== "none" &&
    option.budget_tokens !== 0 && option.max_tokens !== 0;
}

/** The budget of Qwen and llama.cpp, which a switch beside it may turn off; below zero: any. */
function budgetOf(place: JsonObject): number {
  if (place.enable_thinking === false) return 0;
  return tokensIn(place, "thinking_budget") || tokensIn(place, "thinking_budget_tokens");
}

/** Google's options: https://ai.google.dev/gemini-api/docs/openai */
function googleConfig({ google }: JsonObject): JsonObject | null {
  return isObject(google) && isObject(google.thinking_config) ? google.thinking_config : null;
}

function isGoogleOn(config: JsonObject | null): boolean {
  if (config === null) return false;
  const { thinking_budget: budget, thinking_level: level, include_thoughts: shown } = config;
  if (budget !== undefined && budget !== null) return tokensIn(config, "thinking_budget") !== 0;
  return isOn(level) || isOn(shown);
}

/** A number of tokens, also where it is written as `"8000"` or `8e3`; 0 for anything else. */
function tokensIn(options: Json | undefined, name: string): number {
  const value = isObject(options) ? options[name] : undefined;
  if (value === undefined || value === null) return 0;
  const tokens = Number(typeof value === "string" ? value : JSON.stringify(value));
  return Number.isNaN(tokens) ? 0 : Math.min(Math.ceil(tokens), thinkingBudgetMax);
}
