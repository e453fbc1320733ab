import { z } from "zod";
import { responseCacheBytesMax } from "../base/limits.ts";
import { parseAmount, unit } from "../base/money.ts";
import { priceDecimal } from "./price_schema.ts";

const factorWords = "must be a decimal from 0 to 1, such as 0.1";
const costFactor = priceDecimal.refine((text) => (parseAmount(text) ?? unit + 1n) <= unit, {
  error: factorWords,
});

const dayInSeconds = 24 * 60 * 60;

/** Whether responses are kept and answered again, to whom, for how long, and at which price. */
export const responseCacheSchema = z.strictObject({
  enabled: z.boolean().default(false),
  maxAgeSeconds: z.int().min(1).max(30 * dayInSeconds).default(3_600).meta({
    description: "How long a response is kept.",
  }),
  costFactor: costFactor.default("0.1").meta({
    description: "A hit costs this part of what the response costs by the price: 0 to 1.",
  }),
  scope: z.enum(["user", "project"]).default("user").meta({
    description: "Whose responses a user may get. `user`: only their own. `project`: those of " +
      "every user of the project, which may contain private text.",
  }),
  maxTemperature: z.number().min(0).max(100).default(0.5).meta({
    description: "Requests that set a higher temperature are only cached if they ask for it, by " +
      "the header `X-Service-Cache: on`.",
  }),
  maxBytes: z.int().min(1).max(responseCacheBytesMax).default(responseCacheBytesMax).meta({
    description: "The largest response that is kept, in bytes of its JSON.",
  }),
}).meta({
  id: "ResponseCache",
  description: "Answers repeated requests with a stored response.",
});

/** The settings of a project's response cache, as stored. */
export type ResponseCacheSettings = z.output<typeof responseCacheSchema>;

/** The settings of a project that has none. */
export const noResponseCache = responseCacheSchema.parse({});
