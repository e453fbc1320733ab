import { type ActivePriceField, mapPriceFields } from "../base/token_classes.ts";
import { badRequest } from "../base/errors.ts";
import type { Pricing } from "../projects/price_schema.ts";
import type { Project } from "../projects/schema.ts";
import { decimalText, integerText, submittedText } from "./fields.ts";

/** What is filled in for one model. */
export interface ModelRow extends Record<ActivePriceField, string> {
  /** Its name when the form was opened: what the form does not show of it is kept. */
  was: string;
  name: string;
  maxOutputTokens: string;
}

/** What is filled in for prices. */
export interface PriceForm {
  catalogue: boolean;
  markupPercent: string;
  requestFee: string;
  models: ModelRow[];
}

/** Rows for models that are to be added. */
const emptyRows = 3;
/** More than these are edited by the API. */
export const modelsMax = 200;

const noModel: ModelRow = { was: "", name: "", ...mapPriceFields(() => ""), maxOutputTokens: "" };
const columns = Object.keys(noModel);

/** The name of a field of the form, of the row at a place. */
export function fieldName(at: number, column: keyof ModelRow): string {
  return `model.${at}.${column}`;
}

/** The form as a project's prices fill it in. */
export function priceFormOf({ pricing }: Project): PriceForm {
  const { catalogue, markupPercent, requestFee, models } = pricing;
  const rows = Object.entries(models).slice(0, modelsMax).map(([name, price]): ModelRow => ({
    ...noModel,
    was: name,
    name,
    ...mapPriceFields((row) => price[row.price] ?? ""),
    maxOutputTokens: String(price.maxOutputTokens ?? ""),
  }));
  const added = Array.from({ length: emptyRows }, () => noModel);
  return { catalogue, markupPercent, requestFee, models: [...rows, ...added] };
}

/** The form as it was sent. */
export function readPriceForm(form: URLSearchParams): PriceForm {
  const models: ModelRow[] = [];
  for (let at = 0; at < modelsMax + emptyRows && form.has(fieldName(at, "name")); at++) {
    const values = columns.map((column) => [column, form.get(`model.${at}.${column}`) ?? ""]);
    models.push({ ...noModel, ...Object.fromEntries(values) });
  }
  return {
    catalogue: form.has("catalogue"),
    markupPercent: form.get("markupPercent") ?? "",
    requestFee: form.get("requestFee") ?? "",
    models,
  };
}

/**
 * The prices that a form stands for, as `PATCH` would give them: the schema judges them. What the
 * form does not show of a model stays as it was. Throws 400 for a model that is named twice, and
 * for a new one without a name.
 */
export function pricingOf(form: URLSearchParams, before: Pricing): Record<string, unknown> {
  const { catalogue, models } = readPriceForm(form);
  // What does not fit on the page is not lost.
  const unseen = new Map(Object.entries(before.models).slice(modelsMax));
  const named = new Map<string, Record<string, unknown>>();
  models.forEach((row, at) => {
    const name = row.name.trim();
    if (name === "") {
      if (row.was === "" && isPriced(row)) throw badRequest("name", "A model needs a name.");
      return;
    }
    if (named.has(name) || unseen.has(name)) {
      throw badRequest("name", `The model '${name}' is there twice.`);
    }
    named.set(name, priceOf(form, at, before.models[row.was] ?? {}));
  });
  return {
    catalogue,
    markupPercent: decimalText(form, "markupPercent") ?? "0",
    requestFee: decimalText(form, "requestFee") ?? "0",
    models: Object.fromEntries([...named, ...unseen]),
  };
}

/** Whether anything besides its name is filled in. */
function isPriced({ was: _, name: __, ...prices }: ModelRow): boolean {
  return Object.values(prices).some((text) => text.trim() !== "");
}

function priceOf(form: URLSearchParams, at: number, kept: object): Record<string, unknown> {
  const most = integerText(form, fieldName(at, "maxOutputTokens"), "Most output");
  const fields = {
    ...kept,
    ...mapPriceFields(({ price }) => decimalText(form, fieldName(at, price)) ?? undefined),
    maxOutputTokens: most ?? undefined,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A request whose price is shown before and after a change. */
export interface Sample {
  model: string;
  prompt: number;
  cached: number;
  output: number;
}

/** What a sample is where nothing is filled in. */
export const defaultSample = { prompt: 1_000, cached: 0, output: 500 };

/** Reads it; what is not filled in is usual. Throws 400 for what is no number. */
export function readSample(form: URLSearchParams): Sample {
  const prompt = integerText(form, "samplePrompt", "Prompt tokens") ?? defaultSample.prompt;
  const cached = integerText(form, "sampleCached", "Of them cached") ?? defaultSample.cached;
  const output = integerText(form, "sampleOutput", "Output tokens") ?? defaultSample.output;
  if (Math.max(prompt, output) > 10_000_000 || cached > prompt) {
    throw badRequest("sample", "A sample has at most 10,000,000 tokens, and of them some cached.");
  }
  return { model: submittedText(form, "sampleModel") ?? "", prompt, cached, output };
}
