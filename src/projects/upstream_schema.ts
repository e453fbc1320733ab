import { z } from "zod";
import { modelName } from "../base/fields.ts";
import { withoutEndpoint } from "../base/upstream_url.ts";
import type { Sealed } from "../store/secrets.ts";
import { providerNamed, upstreamFormats } from "./providers.ts";
import { noMask, secretSetting } from "./stored_secret.ts";

const httpUrl = z.string().max(2048).refine((text) => {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !text.includes("@");
}, { error: "must be an http or https URL without credentials" });

const milliseconds = (most: number) => z.int().min(1).max(most);
/** Headers that this service sets, and those that concern a single connection. */
const ownHeaders = new RegExp(
  "^(host|content-(length|type|encoding)|accept(-encoding)?|connection|keep-alive|te|trailer|" +
    "transfer-encoding|upgrade|expect|proxy-.*|authorization|x-api-key|api-key|x-request-id)$",
  "i",
);
const headerName = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, { error: "must be a header's name" })
  .refine((name) => !ownHeaders.test(name), { error: "is a header that Farebox sets itself" });
const headerValue = z.string().min(1).max(1024).regex(/^[\x20-\x7e]+$/, {
  error: "must be printable ASCII characters",
});

const upstreamFields = {
  url: httpUrl.refine((text) => !/[?#]/.test(text), { error: "must have no query or fragment" })
    .refine(...withoutEndpoint),
  apiKey: secretSetting(noMask(
    z.string().min(1).max(1024).regex(/^[\x21-\x7e]+$/, {
      error: "must be visible ASCII characters",
    }),
  )).nullable().optional().meta({
    description: "Sent to this host alone. Null, or absent in a new upstream: none.",
  }),
  maxTokensField: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  onAbort: z.enum(["estimate", "drain"]).optional(),
  formats: z.array(z.enum(upstreamFormats)).min(1).optional().meta({
    description: "The formats that it speaks; others are translated. Absent: the provider's, or " +
      "each is tried once.",
  }),
  provider: z.string().regex(/^[a-z0-9][a-z0-9.-]{0,63}$/, {
    error: "must be a provider's id such as openai",
  }).optional().meta({
    description: "A prepared provider, which has a URL, formats and list prices, such as " +
      "`openai` or `openrouter`; else only whose list prices are used.",
  }),
  headers: z.record(headerName, headerValue).optional().meta({
    description: "Headers of every request to it. They are shown to operators: not for secrets.",
  }),
  apiVersion: z.string().regex(/^[\w.-]{1,64}$/).optional().meta({
    description: "Azure's `api-version`. With a date, calls go to the deployment of the model's " +
      "name; absent or `preview`: Azure's v1 API.",
  }),
  timeouts: z.strictObject({
    connectMs: milliseconds(60_000).optional(),
    firstByteMs: milliseconds(3_600_000).optional(),
    totalMs: milliseconds(3_600_000).optional(),
  }).optional().meta({
    description: "In milliseconds; absent: the server's `UPSTREAM_TIMEOUT_MS` for all.",
  }),
  models: z.union([z.array(modelName).min(1).max(1_000), z.literal("upstream")]).optional().meta({
    description: "The models that it serves; a name that ends in `*` stands for all that begin " +
      "like it. `upstream`: those that it lists itself. Absent: any.",
  }),
};

const needsUrl = { path: ["url"], error: "is required: the provider has no URL of its own" };
const hasUrl = ({ url, provider }: { url?: string | undefined; provider?: string | undefined }) =>
  url !== undefined || Boolean(providerNamed(provider)?.url);

const azureOnly = { path: ["apiVersion"], error: "is a setting of the provider `azure` alone" };
const listsModels = {
  path: ["models"],
  error: "cannot be asked: the provider does not list the names of deployments",
};

/** The fields of an upstream's settings. */
export const upstreamObject = z.strictObject({
  ...upstreamFields,
  url: upstreamFields.url.optional().meta({ description: "Absent: the provider's." }),
});
/** An upstream's settings, as they are sent. */
export const upstreamSchema = upstreamObject.refine(hasUrl, needsUrl)
  .refine(({ apiVersion, provider }) => !apiVersion || provider === "azure", azureOnly)
  .refine(
    ({ models, provider }) => models !== "upstream" || providerNamed(provider)?.modelsPath !== null,
    listsModels,
  );

/** Where calls are sent, as stored. */
export type UpstreamSettings = Omit<z.output<typeof upstreamSchema>, "apiKey"> & {
  apiKey: Sealed | null;
};

const upstreamName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, {
  error: "must be 1 to 32 characters of a-z, 0-9, _ and -",
});
const upstreamsMax = 32;
/** Named upstreams, as they are sent. */
export const upstreamsSchema = z.record(upstreamName, upstreamSchema).refine(
  (all) => Object.keys(all).length <= upstreamsMax,
  { error: `must have at most ${upstreamsMax} upstreams` },
);

const targetsMax = 16;
/** Where the calls of one model go. */
const routeSchema = z.strictObject({
  strategy: z.enum(["order", "weight", "cheapest", "fastest"]).default("order").meta({
    description: "`order`: the first that answers. `weight`: by chance. `cheapest`: by price. " +
      "`fastest`: by the recent time to the first token.",
  }),
  sticky: z.boolean().default(true).meta({
    description: "With `weight`: a user's conversation stays with one target, for prompt caches.",
  }),
  targets: z.array(z.strictObject({
    upstream: upstreamName,
    model: modelName.optional().meta({ description: "Absent: the name that was asked for." }),
    weight: z.number().min(0).max(1_000_000).default(1),
  })).min(1).max(targetsMax),
});
/** Where the calls of one model go, as stored. */
export type ModelRoute = z.output<typeof routeSchema>;

const routesMax = 256;
/** Routes by model, alias or `*`. */
export const routesSchema = z.record(modelName, routeSchema).refine(
  (all) => Object.keys(all).length <= routesMax,
  { error: `must have at most ${routesMax} routes` },
);

/** Where an upstream is, with a provider's URL where it has none of its own. */
export function urlOf({ url, provider }: Pick<UpstreamSettings, "url" | "provider">): string {
  const found = url ?? providerNamed(provider)?.url;
  if (!found) throw new Error("an upstream has neither a URL nor a provider with one");
  return found;
}
