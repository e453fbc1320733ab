import { z } from "zod";

/** A model as lists show it: OpenAI's fields, and what it costs here. */
export const modelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.int().meta({ description: "Seconds since 1970, of the project." }),
  owned_by: z.string(),
  name: z.string(),
  display_name: z.string(),
  description: z.string().optional(),
  pricing: z.object({
    prompt: z.string().meta({ description: "Per million tokens, in currency units." }),
    completion: z.string().meta({ description: "Per million tokens, in currency units." }),
    request: z.string().meta({ description: "For each answer that produced output." }),
    currency: z.string(),
  }),
  catalogue_date: z.string().optional().meta({
    description: "Where the price is the catalogue's: the day it was published.",
  }),
}).meta({ id: "Model" });
/** A model as `GET /v1/models` shows it. */
export type ModelView = z.output<typeof modelSchema>;

/** What can be served. */
export const modelsSchema = z.object({ object: z.literal("list"), data: z.array(modelSchema) });
