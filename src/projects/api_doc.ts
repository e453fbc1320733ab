import { z } from "zod";
import { idOf, pageQuery } from "../base/fields.ts";
import {
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../base/endpoint_doc.ts";
import { auditSchema } from "./audit.ts";
import { createKeySchema, createProjectSchema, noLimits, updateProjectSchema } from "./schema.ts";
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
    requestFee: "0",
    models: { "gpt-4o-mini": { input: "0.3", output: "1.2" } },
  },
  upstream: null,
  userSource: "any",
  maxOutputTokens: 16_384,
  allowedFields: [],
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
  suffix: "x7Qa",
  createdAt,
  revokedAt: null,
};
const apiKey = "sk_YourProjectsOwnKey00000000000000000000x7Qa";

const byOperator = { tag: "Projects", access: "operator" } as const;

/** The part of an address that names a project. */
export const projectPath = z.object({
  projectId: idOf("pw", "The project.").meta({ param: { id: "ProjectId" } }),
});
/** What can be wrong with the ids of an address. */
export const idErrors = (what: string): readonly ErrorDoc[] => [
  { status: 400, code: "invalid_value", when: "An id in the address is longer than any." },
  { status: 404, code: "not_found", when: `There is no such ${what}.` },
];

const settingsErrors: readonly ErrorDoc[] = [
  {
    status: 400,
    code: "mode_conflict",
    when: "The setting makes no sense in the shared mode, where money is in wallets.",
  },
  {
    status: 400,
    code: "secrets_key_missing",
    when: "The server has no `SECRETS_KEY`, so it stores no secrets.",
  },
];

const createProject: EndpointDoc = {
  ...byOperator,
  operationId: "createProject",
  summary: "Make a project and its first key",
  body: { schema: createProjectSchema, examples: { priced: settings } },
  answers: {
    201: responseDocs("The project, and its key this once.", madeProjectSchema, {
      made: { project, apiKey },
    }),
  },
  errors: settingsErrors,
};

const listProjects: EndpointDoc = {
  ...byOperator,
  operationId: "listProjects",
  summary: "List the projects",
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
  summary: "Read a project",
  path: projectPath,
  answers: { 200: responseDocs("The project.", oneProjectSchema, { project: { project } }) },
  errors: idErrors("project"),
};

const updateProject: EndpointDoc = {
  ...byOperator,
  operationId: "updateProject",
  summary: "Change a project's settings",
  description: "What is given replaces what there was, also as a whole: of `pricing`, each field " +
    "by itself. Prices count from the next request on.",
  path: projectPath,
  body: {
    schema: updateProjectSchema,
    examples: { limits: { limits: { user: { requestsPerMinute: 20, spendPerDay: "5" } } } },
  },
  answers: {
    200: responseDocs("The project as it is now.", oneProjectSchema, { project: { project } }),
  },
  errors: [...idErrors("project"), ...settingsErrors],
};

const archiveProject: EndpointDoc = {
  ...byOperator,
  operationId: "archiveProject",
  summary: "Archive a project",
  description: "Ends new chats, charges and deposits; what there is can still be read.",
  path: projectPath,
  answers: {
    200: responseDocs("The project, archived.", oneProjectSchema, {
      archived: { project: { ...project, status: "archived" } },
    }),
  },
  errors: idErrors("project"),
};

const listKeys: EndpointDoc = {
  ...byOperator,
  operationId: "listKeys",
  summary: "List a project's API keys",
  path: projectPath,
  answers: { 200: responseDocs("Revoked ones too.", keysSchema, { one: { keys: [key] } }) },
  errors: idErrors("project"),
};

const createKey: EndpointDoc = {
  ...byOperator,
  operationId: "createKey",
  summary: "Make an API key",
  path: projectPath,
  body: {
    schema: createKeySchema,
    examples: { browser: { name: "browser", scopes: ["chat"], user: "ada" } },
  },
  answers: { 201: responseDocs("The key, this once.", madeKeySchema, { made: { key, apiKey } }) },
  errors: idErrors("project"),
};

const revokeKey: EndpointDoc = {
  ...byOperator,
  operationId: "revokeKey",
  summary: "Revoke an API key",
  description: "At once here, and within a second everywhere. A second time changes nothing.",
  path: projectPath.extend({ keyId: idOf("key", "The key's id.") }),
  answers: {
    200: responseDocs("The key has ended.", revokedKeySchema, {
      revoked: { revoked: true, key: { ...key, revokedAt: createdAt } },
    }),
  },
  errors: idErrors("project or key"),
};

const deed = {
  id: "aud_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  at: createdAt,
  actor: { type: "operator", id: "operator" },
  via: "api",
  action: "key.revoked",
  target: key.id,
  detail: { name: "browser", suffix: "x7Qa" },
};
const trailPage = responseDocs("One page, newest first.", auditSchema, {
  page: { actions: [deed], nextCursor: null },
});
const badPage: ErrorDoc = {
  status: 400,
  code: "invalid_value",
  when: "`limit` or `cursor` is not valid.",
};

const listAudit: EndpointDoc = {
  ...byOperator,
  operationId: "listAudit",
  summary: "Read who changed what in a project",
  description: "By the console and by this API. A row is written with its change, or not at all.",
  path: projectPath,
  query: pageQuery,
  answers: { 200: trailPage },
  errors: [...idErrors("project"), badPage],
};

const listInstanceAudit: EndpointDoc = {
  ...byOperator,
  operationId: "listInstanceAudit",
  summary: "Read who changed what in the instance",
  description: "What concerns no single project, such as that one was made.",
  query: pageQuery,
  answers: { 200: trailPage },
  errors: [badPage],
};

/** The operations of whoever has `ADMIN_KEY` on projects. */
export const projectApiDoc: EndpointDocs = {
  "/v1/admin/projects": { GET: listProjects, POST: createProject },
  "/v1/admin/projects/:projectId": { GET: getProject, PATCH: updateProject },
  "/v1/admin/audit": { GET: listInstanceAudit },
  "/v1/admin/projects/:projectId/audit": { GET: listAudit },
  "/v1/admin/projects/:projectId/archive": { POST: archiveProject },
  "/v1/admin/projects/:projectId/keys": { GET: listKeys, POST: createKey },
  "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: revokeKey },
};
