import { z } from "zod";
import { idOf, nextCursor, time } from "../base/fields.ts";
import { type ApiKey, apiKeyFields, createProjectSchema, type Project } from "./schema.ts";

const set = z.literal("set").meta({ description: "It is there; it is never shown." });

/** A project as an operator sees it: its settings, without the secrets among them. */
export const projectSchema = createProjectSchema.extend({
  id: idOf("pw", "The project."),
  stripe: z.object({ secretKey: set, webhookSecret: set }).nullable(),
  upstream: z.object({
    url: z.string(),
    apiKey: set.nullable(),
    maxTokensField: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
    onAbort: z.enum(["estimate", "drain"]).optional(),
  }).nullable(),
  status: z.enum(["active", "archived"]),
  createdAt: time,
  updatedAt: time,
}).meta({ id: "Project" });
/** A project as an operator sees it. */
export type ProjectView = z.output<typeof projectSchema>;

/** The answer to a question for a project, and to every change of one. */
export const oneProjectSchema = z.object({ project: projectSchema });

/** A page of projects. */
export const projectsSchema = z.object({ projects: z.array(projectSchema), nextCursor });

const secretKey = z.string().regex(/^sk_/).meta({
  description: "The key itself. It is shown this once, and stored only as its SHA-256.",
});

/** A new project, with its first key. */
export const madeProjectSchema = z.object({ project: projectSchema, apiKey: secretKey });

/** An API key as an operator sees it. */
export const apiKeySchema = z.object({
  id: idOf("key", "The key's own id, which opens nothing."),
  projectId: idOf("pw", "The project that it opens."),
  ...apiKeyFields,
  suffix: z.string().meta({ description: "The key's last four characters, to tell keys apart." }),
  createdAt: time,
  revokedAt: time.nullable(),
}).meta({ id: "ApiKey" });

/** A project's keys. */
export const keysSchema = z.object({ keys: z.array(apiKeySchema) });
/** A new key. */
export const madeKeySchema = z.object({ key: apiKeySchema, apiKey: secretKey });
/** A key that has ended. */
export const revokedKeySchema = z.object({ revoked: z.literal(true), key: apiKeySchema });

/** A project as an operator sees it: the upstream's key is only said to be there. */
export function viewProject(project: Project): ProjectView {
  const { upstream, stripe, listeners: _, ...rest } = project;
  return {
    ...rest,
    stripe: stripe && { secretKey: "set", webhookSecret: "set" },
    upstream: upstream && { ...upstream, apiKey: upstream.apiKey ? "set" : null },
  };
}

/** A key's record, which shows nothing of the key itself but its end. */
export function viewKey(key: ApiKey): z.output<typeof apiKeySchema> {
  return key;
}
