import type { Amount } from "../base/money.ts";
import { answerCost, termsOf } from "../chat/pricing.ts";
import { canonicalJson } from "../base/json.ts";
import type { Pricing } from "../projects/prices.ts";
import type { Project } from "../projects/schema.ts";
import type { Sample } from "./price_form.ts";

/** What one answer costs now and would cost then; null where the model is not served. */
export interface Effect {
  model: string;
  now: Amount | null;
  then: Amount | null;
}

const modelsShownMax = 30;

/** What a sample request costs before and after a change of prices: by the model asked for first. */
export function effectsOf(project: Project, pricing: Pricing, sample: Sample): Effect[] {
  const changed = { ...project, pricing };
  const models = new Set([
    ...(sample.model === "" ? [] : [sample.model]),
    ...changedModels(project.pricing, pricing),
  ]);
  return [...models].slice(0, modelsShownMax).map((model) => ({
    model,
    now: costOf(project, { ...sample, model }),
    then: costOf(changed, { ...sample, model }),
  }));
}

/** Those whose own price changed; all of them where the fee of a request did. */
function changedModels(before: Pricing, after: Pricing): string[] {
  const names = new Set([...Object.keys(before.models), ...Object.keys(after.models)]);
  const isFeeMoved = before.requestFee !== after.requestFee;
  return [...names].filter((name) =>
    isFeeMoved ||
    canonicalJson(before.models[name] ?? null) !== canonicalJson(after.models[name] ?? null)
  );
}

/** By the very functions that charge. */
function costOf(project: Project, { model, prompt, cached, output }: Sample): Amount | null {
  const terms = termsOf(project, model);
  if (!terms) return null;
  const usage = {
    uncachedInput: prompt - cached,
    cachedInput: cached,
    cacheWrite: 0,
    output,
    reasoning: 0,
    source: "provider" as const,
  };
  return answerCost(terms.price, usage, output > 0);
}
