import { z } from "zod";

const perToken = (what: string) =>
  z.string().meta({ description: `For ${what}, in currency units.` });

/** A model as lists show it: OpenAI's fields, and its price in the project. */
export const modelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.int().meta({ description: "Seconds since 1970, of the project." }),
  owned_by: z.string(),
  name: z.string(),
  display_name: z.string(),
  description: z.string().optional(),
  architecture: z.object({
    input_modalities: z.array(z.string()),
    output_modalities: z.array(z.string()),
  }).optional().meta({ description: "What it reads and writes, where its upstream says so." }),
  pricing: z.object({
    prompt: perToken("a prompt token"),
    completion: perToken("an output token"),
    input_cache_read: perToken("a prompt token from the cache").optional(),
    input_cache_write: perToken("a prompt token that is written to the cache").optional(),
    internal_reasoning: perToken("a reasoning token").optional(),
    audio: perToken("an audio token of the prompt").optional(),
    request: z.string().meta({ description: "For each response that produced output." }),
    web_search: z.string().optional().meta({ description: "For each search at the provider." }),
    per_million: z.record(z.string(), z.string()).meta({
      description: "Prices of a million tokens, by the names of price settings.",
    }),
    tool_calls: z.record(z.string(), z.string()).optional().meta({
      description: "For each call of a tool at the provider, by the tool's name.",
    }),
    images: z.record(z.string(), z.string()).optional().meta({
      description: "For each image, by its quality and size.",
    }),
    million_characters: z.string().optional().meta({
      description: "For a million characters that are spoken.",
    }),
    audio_minute: z.string().optional().meta({ description: "For a minute of sound." }),
    currency: z.string(),
  }),
  catalogue_date: z.string().optional().meta({
    description: "Where the price is the catalogue's: the day it was published.",
  }),
}).meta({ id: "Model" });
/** A model as `GET /v1/models` shows it. */
export type ModelView = z.output<typeof modelSchema>;

/** The list of models, in OpenAI's shape. */
export const modelsSchema = z.object({ object: z.literal("list"), data: z.array(modelSchema) });
