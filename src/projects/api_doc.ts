import { z } from "zod";
import { idOf, pageQuery } from "../base/fields.ts";
import { noAlerts } from "./alerts_schema.ts";
import { noBrand } from "./brand_schema.ts";
import { noResponseCache } from "./response_cache_schema.ts";
import {
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../base/endpoint_doc.ts";
import { auditQuery, auditSchema } from "./audit.ts";
import { createKeySchema, createProjectSchema, noLimits, patchProjectSchema } from "./schema.ts";
import {
  keysSchema,
  madeKeySchema,
  madeProjectSchema,
  oneProjectSchema,
  projectsSchema,
  revokedKeySchema,
} from "./view.ts";

const projectId = "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
const createdAt = "2026-01-31T09:30:00.000Z";
const settings = {
  name: "My app",
  topUpUrl: "https://my.app/topup?user={user}",
  pricing: { models: { "gpt-4o-mini": { input: "0.30", output: "1.20" } } },
};
const project = {
  ...settings,
  id: projectId,
  ownerUserId: "owner",
  currency: "usd",
  mode: "default",
  pricing: {
    catalogue: false,
    markupPercent: "0",
    priceFrom: "list",
    requestFee: "0",
    models: { "gpt-4o-mini": { input: "0.3", output: "1.2" } },
  },
  upstream: null,
  upstreams: {},
  routes: {},
  responseCache: noResponseCache,
  requestLogDays: 30,
  keepResponses: "on",
  paywallOnJson: "message",
  brand: noBrand,
  alerts: noAlerts,
  userSource: "any",
  userHeader: null,
  maxOutputTokens: null,
  allowedFields: [],
  unknownFields: "refuse",
  billingEvents: true,
  messages: {},
  topUp: { amounts: ["5", "10", "25"], min: "1", max: "1000", checkoutUrl: null },
  stripe: null,
  trialCredits: "0",
  lowBalance: null,
  limits: noLimits,
  status: "active",
  createdAt,
  updatedAt: createdAt,
};
const key = {
  id: "key_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  projectId,
  name: "browser",
  scopes: ["chat"],
  defaultUser: null,
  user: "ada",
  expiresAt: null,
  models: ["gpt-4o-mini", "o4-*"],
  budget: "25",
  suffix: "x7Qa",
  createdAt,
  revokedAt: null,
  createdBy: "operator",
};
const apiKey = "sk_YourProjectsOwnKey00000000000000000000x7Qa";

const byOperator = { tag: "Projects", access: "operator" } as const;

/** The path parameter that names a project. */
export const projectPath = z.object({
  projectId: idOf("pw", "The project.").meta({ param: { id: "ProjectId" } }),
});
/** The errors of ids in a path. */
export const idErrors = (what: string): readonly ErrorDoc[] => [
  { status: 400, code: "invalid_value", when: "An id in the path is too long." },
  { status: 404, code: "not_found", when: `The ${what} does not exist.` },
];

const settingsErrors: readonly ErrorDoc[] = [
  {
    status: 400,
    code: "mode_conflict",
    when: "The setting does not apply in the shared mode, where money is in wallets.",
  },
  {
    status: 400,
    code: "secrets_key_missing",
    when: "The server has no `SECRETS_KEY`, so it cannot store secrets.",
  },
];

const createProject: EndpointDoc = {
  ...byOperator,
  operationId: "createProject",
  summary: "Create a project",
  body: { schema: createProjectSchema, examples: { priced: settings } },
  answers: {
    201: responseDocs("The project, and its keys, which are shown only once.", madeProjectSchema, {
      made: { project, apiKey, ownerKey: apiKey },
    }),
  },
  errors: settingsErrors,
};

const listProjects: EndpointDoc = {
  ...byOperator,
  operationId: "listProjects",
  summary: "List projects",
  query: pageQuery,
  answers: {
    200: responseDocs("One page, oldest first.", projectsSchema, {
      page: { projects: [project], nextCursor: null },
    }),
  },
  errors: [{ status: 400, code: "invalid_value", when: "`limit` or `cursor` is not valid." }],
};

const getProject: EndpointDoc = {
  ...byOperator,
  operationId: "getProject",
  summary: "Retrieve a project",
  path: projectPath,
  answers: { 200: responseDocs("The project.", oneProjectSchema, { project: { project } }) },
  errors: idErrors("project"),
};

const updateProject: EndpointDoc = {
  ...byOperator,
  operationId: "updateProject",
  summary: "Update a project",
  description: "A JSON merge patch (RFC 7396): objects such as `limits`, `topUp`, `messages` and " +
    "`pricing.models` merge at every level, and null removes a member, which then has its " +
    'default. Lists are replaced. A project can be sent back as it was read: `{"set": true}` keeps ' +
    "a stored secret, and null removes it. The key of an upstream that a change does not name " +
    "stays as long as its host stays. New prices apply from the next request on.",
  path: projectPath,
  body: {
    schema: patchProjectSchema,
    examples: { limits: { limits: { user: { requestsPerMinute: 20, spendPerDay: "5" } } } },
  },
  answers: {
    200: responseDocs("The updated project.", oneProjectSchema, { project: { project } }),
  },
  errors: [...idErrors("project"), ...settingsErrors],
};

const archiveProject: EndpointDoc = {
  ...byOperator,
  operationId: "archiveProject",
  summary: "Archive a project",
  description: "Refuses new calls, charges and deposits. Existing data can still be read.",
  path: projectPath,
  answers: {
    200: responseDocs("The archived project.", oneProjectSchema, {
      archived: { project: { ...project, status: "archived" } },
    }),
  },
  errors: idErrors("project"),
};

const listKeys: EndpointDoc = {
  ...byOperator,
  operationId: "listKeys",
  summary: "List API keys",
  path: projectPath,
  answers: { 200: responseDocs("Includes revoked keys.", keysSchema, { one: { keys: [key] } }) },
  errors: idErrors("project"),
};

const createKey: EndpointDoc = {
  ...byOperator,
  operationId: "createKey",
  summary: "Create an API key",
  path: projectPath,
  body: {
    schema: createKeySchema,
    examples: { browser: { name: "browser", scopes: ["chat"], user: "ada" } },
  },
  answers: {
    201: responseDocs("The key, which is shown only once.", madeKeySchema, {
      made: { key, apiKey },
    }),
  },
  errors: idErrors("project"),
};

const revokeKey: EndpointDoc = {
  ...byOperator,
  operationId: "revokeKey",
  summary: "Revoke an API key",
  description:
    "Takes effect at once on this server, and within a second on others. Repeating it changes nothing.",
  path: projectPath.extend({ keyId: idOf("key", "The key's id.") }),
  query: z.object({
    made: z.enum(["true", "false"]).optional().meta({
      description: "`true`: also ends the keys and subscriptions that were made with the key.",
    }),
  }),
  answers: {
    200: responseDocs("The key is revoked.", revokedKeySchema, {
      revoked: { revoked: true, key: { ...key, revokedAt: createdAt }, made: [] },
    }),
  },
  errors: idErrors("project or key"),
};

const auditAction = {
  id: "aud_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  at: createdAt,
  actor: { type: "operator", id: "operator" },
  via: "api",
  action: "key.revoked",
  target: key.id,
  detail: { name: "browser", suffix: "x7Qa" },
};
const trailPage = responseDocs("One page, newest first.", auditSchema, {
  page: { actions: [auditAction], nextCursor: null },
});
const badPage: ErrorDoc = {
  status: 400,
  code: "invalid_value",
  when: "`limit`, `cursor` or `action` is not valid.",
};

const listAudit: EndpointDoc = {
  ...byOperator,
  operationId: "listAudit",
  summary: "List the audit trail of a project",
  description:
    "Changes made in the console and by this API. Each row is written together with its change. " +
    "A filtered page may have fewer rows than `limit`; continue with `nextCursor`.",
  path: projectPath,
  query: auditQuery,
  answers: { 200: trailPage },
  errors: [...idErrors("project"), badPage],
};

const listInstanceAudit: EndpointDoc = {
  ...byOperator,
  operationId: "listInstanceAudit",
  summary: "List the audit trail of the instance",
  description: "Actions that concern no single project, such as the creation of one.",
  query: auditQuery,
  answers: { 200: trailPage },
  errors: [badPage],
};

/** The API documentation of the operator's endpoints for projects. They need `ADMIN_KEY`. */
export const projectApiDoc: EndpointDocs = {
  "/v1/admin/projects": { GET: listProjects, POST: createProject },
  "/v1/admin/projects/:projectId": { GET: getProject, PATCH: updateProject },
  "/v1/admin/audit": { GET: listInstanceAudit },
  "/v1/admin/projects/:projectId/audit": { GET: listAudit },
  "/v1/admin/projects/:projectId/archive": { POST: archiveProject },
  "/v1/admin/projects/:projectId/keys": { GET: listKeys, POST: createKey },
  "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: revokeKey },
};
