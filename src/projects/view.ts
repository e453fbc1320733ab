import { z } from "zod";
import { idOf, nextCursor, time } from "../base/fields.ts";
import { upstreamObject, type UpstreamSettings } from "./upstream_schema.ts";
import { type ApiKey, apiKeyFields, createProjectSchema, type Project } from "./schema.ts";
import { shownSecretSchema, showSecret } from "./stored_secret.ts";

const upstreamView = upstreamObject.extend({ apiKey: shownSecretSchema });

/** A project as an operator sees it: its settings, without secrets. */
const projectSchema = createProjectSchema.extend({
  id: idOf("pw", "The project."),
  topUp: createProjectSchema.shape.topUp.unwrap().required(),
  stripe: z.object({
    secretKey: shownSecretSchema.unwrap(),
    webhookSecret: shownSecretSchema.unwrap(),
  }).nullable(),
  upstream: upstreamView.nullable(),
  upstreams: z.record(z.string(), upstreamView),
  status: z.enum(["active", "archived"]),
  createdAt: time,
  updatedAt: time,
}).meta({ id: "Project" });
/** A project as an operator sees it. */
type ProjectView = z.output<typeof projectSchema>;

/** The response to reading or changing a project. */
export const oneProjectSchema = z.object({ project: projectSchema });

/** A page of projects. */
export const projectsSchema = z.object({ projects: z.array(projectSchema), nextCursor });

const secretKey = z.string().regex(/^sk_/).meta({
  description: "The key itself. It is shown only once, and stored only as its SHA-256.",
});

/** A new project, with the key of its app and the key of its owner. */
export const madeProjectSchema = z.object({
  project: projectSchema,
  apiKey: secretKey,
  ownerKey: secretKey.meta({ description: "The key that opens the project's console." }),
});

/** An API key as an operator sees it. */
const apiKeySchema = z.object({
  id: idOf("key", "The key's id, which grants no access."),
  projectId: idOf("pw", "The project of the key."),
  ...apiKeyFields,
  suffix: z.string().meta({ description: "The key's last four characters, to tell keys apart." }),
  createdAt: time,
  revokedAt: time.nullable(),
  createdBy: z.string().meta({
    description: "The key that created it, or `operator`.",
  }),
}).meta({ id: "ApiKey" });

/** A project's keys. */
export const keysSchema = z.object({ keys: z.array(apiKeySchema) });
/** A new key. */
export const madeKeySchema = z.object({ key: apiKeySchema, apiKey: secretKey });
/** A revoked key. */
export const revokedKeySchema = z.object({
  revoked: z.literal(true),
  key: apiKeySchema,
  made: z.array(z.string()).meta({
    description: "With `made=true`: the keys and subscriptions that were ended with it.",
  }),
});

/**
 * Returns a project as an operator sees it. A change that sends any of its settings back changes
 * nothing.
 */
export function viewProject(project: Project): ProjectView {
  const { upstream, upstreams, stripe, listeners: _, unconfirmedEmails: __, ...rest } = project;
  return {
    ...rest,
    stripe: stripe && {
      secretKey: showSecret(stripe.secretKey),
      webhookSecret: showSecret(stripe.webhookSecret),
    },
    upstream: upstream && viewUpstream(upstream),
    upstreams: Object.fromEntries(
      Object.entries(upstreams).map(([name, each]) => [name, viewUpstream(each)]),
    ),
  };
}

function viewUpstream(upstream: UpstreamSettings): z.output<typeof upstreamView> {
  return { ...upstream, apiKey: showSecret(upstream.apiKey) };
}

/** Returns a key's record, which shows only the last characters of the key itself. */
export function viewKey(key: ApiKey): z.output<typeof apiKeySchema> {
  return key;
}
