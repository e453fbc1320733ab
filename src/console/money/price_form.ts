import { type CommonPriceField, mapCommonPrices } from "../../base/token_classes.ts";
import { badRequest } from "../../base/errors.ts";
import { isObject, ownMember, parseJson } from "../../base/json.ts";
import type { Pricing } from "../../projects/price_schema.ts";
import type { Project } from "../../projects/schema.ts";
import { decimalText, integerText, submittedText } from "../submitted_fields.ts";

/** The fields of one model. */
export interface ModelRow extends Record<CommonPriceField, string> {
  /** Its name when the form was opened: settings that the form does not show are kept. */
  was: string;
  name: string;
  maxOutputTokens: string;
}

/** The fields of the price form. */
export interface PriceForm {
  catalogue: boolean;
  markupPercent: string;
  requestFee: string;
  models: ModelRow[];
  /** All prices of the form as JSON, with the fields that the rows of the table do not show. */
  json: string;
}

/** How many empty rows are shown for new models. */
const emptyRows = 3;
/** Projects with more models are edited by the API. */
export const modelsMax = 200;

const noModel: ModelRow = { was: "", name: "", ...mapCommonPrices(() => ""), maxOutputTokens: "" };
const columns = Object.keys(noModel);

/** Returns the name of a form field, for the row at a position. */
export function fieldName(at: number, column: keyof ModelRow): string {
  return `model.${at}.${column}`;
}

/** Fills the form with a project's prices. */
export function priceFormOf({ pricing }: Project): PriceForm {
  const { catalogue, markupPercent, requestFee, models } = pricing;
  const rows = Object.entries(models).slice(0, modelsMax).map(([name, price]): ModelRow => ({
    ...noModel,
    was: name,
    name,
    ...mapCommonPrices((row) => price[row.price] ?? ""),
    maxOutputTokens: String(price.maxOutputTokens ?? ""),
  }));
  const added = Array.from({ length: emptyRows }, () => noModel);
  const json = JSON.stringify(pricing, null, 2);
  return { catalogue, markupPercent, requestFee, models: [...rows, ...added], json };
}

/** Reads the submitted form. */
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
    json: "",
  };
}

/**
 * Returns the submitted prices as `PATCH` would receive them; the schema validates them. Settings
 * of a model that the form does not show are kept. Throws 400 for a duplicate model, for a new one
 * without a name, and for JSON that is not an object.
 */
export function pricingOf(form: URLSearchParams, before: Pricing): Record<string, unknown> {
  if (form.get("as") === "json") return pricingAsJson(form);
  const { catalogue, models } = readPriceForm(form);
  // Models that do not fit on the page are kept.
  const unseen = new Map(Object.entries(before.models).slice(modelsMax));
  const named = new Map<string, Record<string, unknown>>();
  models.forEach((row, at) => {
    const name = row.name.trim();
    if (name === "") {
      if (row.was === "" && isPriced(row)) throw badRequest("name", "A model needs a name.");
      return;
    }
    if (named.has(name) || unseen.has(name)) {
      throw badRequest("name", `The model '${name}' is listed twice.`);
    }
    named.set(name, priceOf(form, at, ownMember(before.models, row.was) ?? {}));
  });
  return {
    catalogue,
    markupPercent: decimalText(form, "markupPercent") ?? "0",
    priceFrom: before.priceFrom,
    requestFee: decimalText(form, "requestFee") ?? "0",
    models: Object.fromEntries([...named, ...unseen]),
  };
}

function pricingAsJson(form: URLSearchParams): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(form.get("json") ?? "");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badRequest("json", `The prices are not JSON: ${why}`);
  }
  if (isObject(value)) return value;
  throw badRequest("json", "The prices must be a JSON object, as the API has them in 'pricing'.");
}

/** Whether any field besides the name is filled in. */
function isPriced({ was: _, name: __, ...prices }: ModelRow): boolean {
  return Object.values(prices).some((text) => text.trim() !== "");
}

function priceOf(form: URLSearchParams, at: number, kept: object): Record<string, unknown> {
  const most = integerText(form, fieldName(at, "maxOutputTokens"), "Max. output");
  const fields = {
    ...kept,
    ...mapCommonPrices(({ price }) => decimalText(form, fieldName(at, price)) ?? undefined),
    maxOutputTokens: most ?? undefined,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A request whose cost is shown before and after a change. */
export interface Sample {
  model: string;
  prompt: number;
  cached: number;
  output: number;
}

/** The defaults of the sample. */
export const defaultSample = { prompt: 1_000, cached: 0, output: 500 };

/** Reads the sample; empty fields get the defaults. Throws 400 for an invalid number. */
export function readSample(form: URLSearchParams): Sample {
  const prompt = integerText(form, "samplePrompt", "Prompt tokens") ?? defaultSample.prompt;
  const cached = integerText(form, "sampleCached", "Cached prompt tokens") ?? defaultSample.cached;
  const output = integerText(form, "sampleOutput", "Output tokens") ?? defaultSample.output;
  if (Math.max(prompt, output) > 10_000_000 || cached > prompt) {
    throw badRequest(
      "sample",
      "A sample has at most 10,000,000 tokens, some of which may be cached.",
    );
  }
  return { model: submittedText(form, "sampleModel") ?? "", prompt, cached, output };
}
