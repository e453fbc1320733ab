import { z } from "zod";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { listPriceSchema } from "../projects/price_schema.ts";
import { cataloguePricesSchema } from "./catalogue_file.ts";

const tag = { tag: "Operations", access: "operator" } as const;

const dates = {
  date: z.iso.date().meta({ description: "The day of the newest prices." }),
  packageDate: z.iso.date().meta({ description: "The day of the prices that came with Farebox." }),
};
const changesSchema = z.object({
  ...dates,
  changes: z.array(z.object({
    provider: z.string(),
    model: z.string(),
    before: listPriceSchema.nullable(),
    after: listPriceSchema.nullable(),
  })).meta({
    description: "Models whose price differs. `before` is null for new ones, and `after` for " +
      "those that only the last refresh had a price for.",
  }),
});

const price = { input: "2.5", cachedInput: "1.25", output: "10" };
const file = { date: "2026-11-25", prices: { openai: { "gpt-4o": price } } };
const days = { date: "2026-09-23", packageDate: "2026-09-23" };
const change = {
  provider: "openai",
  model: "gpt-4o",
  before: { input: "5", output: "15" },
  after: price,
};

const body = { schema: cataloguePricesSchema, examples: { file } };

const read: EndpointDoc = {
  ...tag,
  operationId: "getCatalogue",
  summary: "Retrieve the price catalogue",
  answers: { 200: responseDocs("The dates.", z.object(dates), { days }) },
};
const diff: EndpointDoc = {
  ...tag,
  operationId: "diffCatalogue",
  summary: "Compare list prices",
  description: "The body is a price file in Farebox's form, or as `providers` the " +
    "list that `@pydantic/genai-prices` publishes as `data.json`.",
  body,
  answers: {
    200: responseDocs("What would change.", changesSchema, {
      one: { ...days, changes: [change] },
    }),
  },
};
const refresh: EndpointDoc = {
  ...diff,
  operationId: "refreshCatalogue",
  summary: "Update list prices",
  description: "They replace those of the last refresh, stand in front of the prices that came " +
    "with Farebox, and apply to the next request; in other processes within 15 s.",
  answers: {
    200: responseDocs("What has changed.", changesSchema, {
      one: { ...days, date: "2026-11-25", changes: [change] },
    }),
  },
};

/** The API documentation of the catalogue. */
export const catalogueApiDoc: EndpointDocs = {
  "/v1/admin/catalogue": { GET: read, POST: refresh },
  "/v1/admin/catalogue/diff": { POST: diff },
};
