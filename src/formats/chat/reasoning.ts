import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** Whether a field of any vendor asks for reasoning. */
export function asksReasoning(body: JsonObject): boolean {
  const { chat_template_kwargs: template, thinking_budget: budget } = body;
  return isOn(body.reasoning) || isOn(body.thinking) || body.include_reasoning === true ||
    body.enable_thinking === true || (typeof budget === "number" && budget > 0) ||
    (isObject(template) && (template.enable_thinking === true || template.thinking === true));
}

/** Off are `false`, `{type: "disabled"}`, `{enabled: false}`, `{effort: "none"}` and no budget. */
function isOn(option: Json | undefined): boolean {
  if (!isObject(option)) return option !== undefined && option !== null && option !== false;
  return option.type !== "disabled" && option.enabled !== false && option.effort !== "none" &&
    option.budget_tokens !== 0 && option.max_tokens !== 0;
}

/** The most tokens that the model may think for: Anthropic's, OpenRouter's and Qwen's field. */
export function thinkingBudget(body: JsonObject): number | null {
  const { thinking, reasoning } = body;
  const budgets = [
    isObject(thinking) && isOn(thinking) ? thinking.budget_tokens : undefined,
    isObject(reasoning) && isOn(reasoning) ? reasoning.max_tokens : undefined,
    body.thinking_budget,
  ];
  const found = budgets.find((budget) => typeof budget === "number" && budget > 0);
  return typeof found === "number" ? Math.floor(found) : null;
}
