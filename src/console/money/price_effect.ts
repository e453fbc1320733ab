import { type Amount, formatAmount } from "../../base/money.ts";
import { tokenCounts } from "../../base/token_classes.ts";
import { costOfUse, useOfTokens } from "../../pricing/price.ts";
import type { Prices } from "../../pricing/terms.ts";
import { canonicalJson, ownMember } from "../../base/json.ts";
import type { Pricing } from "../../projects/price_schema.ts";
import type { Project } from "../../projects/schema.ts";
import type { Sample } from "./price_form.ts";

/** What one response costs now and after the change; null where the model is not served. */
export interface PriceEffect {
  model: string;
  now: Amount | null;
  then: Amount | null;
  /** The difference, for people; empty where only one of the two exists. */
  change: string;
}

/** The effect of a change of prices: on some models by a sample, on the catalogue's in words. */
export interface PriceEffects {
  models: PriceEffect[];
  /** Null where nothing changes for them. */
  catalogue: string | null;
}

const modelsShownMax = 30;
/** The catalogue cannot be listed as a whole: a few well-known models of several providers. */
const wellKnown = ["gpt-5", "gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-flash"];

/**
 * Computes what a sample request costs before and after a change of prices, starting with the
 * requested model.
 */
export function effectsOf(
  { prices, at }: { prices: Prices; at: number },
  { project, pricing, sample }: { project: Project; pricing: Pricing; sample: Sample },
): PriceEffects {
  const changed = { ...project, pricing };
  const catalogue = catalogueEffect(project, pricing);
  const own = [
    ...(sample.model === "" ? [] : [sample.model]),
    ...changedModels(project.pricing, pricing),
  ];
  /** Uses the same functions that charge. */
  const costOf = (project: Project, { model, prompt, cached, output }: Sample): Amount | null => {
    const terms = prices.terms(project, model, at);
    const counts = tokenCounts({ uncachedInput: prompt - cached, cachedInput: cached, output });
    return terms && costOfUse(terms.price, useOfTokens(counts));
  };
  const effectOf = (model: string): PriceEffect => {
    const now = costOf(project, { ...sample, model });
    const then = costOf(changed, { ...sample, model });
    return { model, now, then, change: now === null || then === null ? "" : changeOf(now, then) };
  };
  const others = catalogue === null ? [] : wellKnown
    .filter((model) => ![project.pricing, pricing].some(({ models }) => model in models))
    .filter((model) => prices.terms(project, model, at) ?? prices.terms(changed, model, at));
  const models = new Set([...[...new Set(own)].slice(0, modelsShownMax), ...others]);
  return { models: [...models].map(effectOf), catalogue };
}

/** Returns the models whose own price changed; all of them where the request fee did. */
function changedModels(before: Pricing, after: Pricing): string[] {
  const names = new Set([...Object.keys(before.models), ...Object.keys(after.models)]);
  const isFeeMoved = before.requestFee !== after.requestFee;
  return [...names].filter((name) =>
    isFeeMoved ||
    canonicalJson(ownMember(before.models, name) ?? null) !==
      canonicalJson(ownMember(after.models, name) ?? null)
  );
}

/** Describes what changes for models of the catalogue that have no price of their own. */
function catalogueEffect(project: Project, after: Pricing): string | null {
  const before = project.pricing;
  const reaches = ({ catalogue, models }: Pricing) =>
    catalogue && project.currency === "usd" && models["*"] === undefined;
  const says = (what: string) =>
    `Every model of the built-in catalogue ${what}, except those with a price of your own.`;
  if (reaches(before) && reaches(after)) {
    const isMoved = before.markupPercent !== after.markupPercent ||
      before.requestFee !== after.requestFee;
    return isMoved ? says("changes in price") : null;
  }
  if (reaches(after)) return says("is then served at its own price, with the markup");
  if (!reaches(before)) return null;
  return says(
    after.models["*"] === undefined ? "is no longer served" : "is then charged at the price of “*”",
  );
}

function changeOf(now: bigint, then: bigint): string {
  if (now === then) return "none";
  const sign = then > now ? "+" : "";
  const percent = now === 0n ? "" : ` (${sign}${Number(((then - now) * 1000n) / now) / 10} %)`;
  return `${sign}${formatAmount(then - now)}${percent}`;
}
