import { ApiError, badRequest, notFound } from "../base/errors.ts";
import { toBase62 } from "../base/ids.ts";
import { utf8Length } from "../base/utf8.ts";
import type { Deps } from "../deps.ts";
import type { NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import { projectKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { type AuditAction, type AuditActor, auditRow } from "./audit.ts";
import { hashKey } from "./auth.ts";
import type { ProjectCache, ProjectSnapshot } from "./project_cache.ts";
import {
  changedFields,
  projectArchivedEvent,
  projectUpdatedEvent,
  secretRotatedEvent,
  stripeChangedEvent,
} from "./events.ts";
import type {
  ApiKey,
  CreateKey,
  CreateProject,
  Project,
  UpdateProject,
  UpstreamSettings,
} from "./schema.ts";
import { sealStripe, sealUpstream } from "./reseal.ts";
import { listApiKeys, putApiKey, putProject, readApiKey } from "./store.ts";
import { type Json, type JsonObject, parseJson } from "../base/json.ts";

/** Computes what a project becomes and what that causes; may add rows of its own to the write. */
export type AlterProject = (
  snapshot: ProjectSnapshot,
  write: Write,
) => Promise<AlteredProject> | AlteredProject;
/**
 * Adds rows of its maker's to the write that makes something with a secret, so that all of it is
 * written or nothing. What it throws ends the deed.
 */
export type AlongsideWrite = (write: Write, made: { id: string; secret: string }) => Promise<void>;
/** A project as it shall be, and the events of it. */
export interface AlteredProject {
  project: Project;
  events: readonly NewEvent[];
}

/**
 * What an operator or an owner does to projects and keys. Every change moves the project's version,
 * and leaves a row in its audit trail that says by whom.
 */
export interface ProjectAdmin {
  /**
   * Commits one change of a project, on the version that it was computed from. The row of the audit
   * trail is its own affair. Throws 404.
   */
  change(projectId: string, alter: AlterProject): Promise<Project>;
  /** Makes a project and its first key, which is returned this once. */
  create(settings: CreateProject, by: AuditActor): Promise<{ project: Project; apiKey: string }>;
  /**
   * Replaces what `changesOf` gives for the project as it is; where that is nothing, nothing is
   * told of it. Throws 404, 400, and what that does.
   */
  update(
    projectId: string,
    changesOf: (project: Project) => UpdateProject,
    by: AuditActor,
  ): Promise<Project>;
  /** Ends new chats, charges and deposits; reads go on. Throws 404. */
  archive(projectId: string, by: AuditActor): Promise<Project>;
  /** One more key, returned this once. Throws 404. */
  createKey(
    projectId: string,
    settings: CreateKey,
    by: AuditActor,
    alongside?: AlongsideWrite,
  ): Promise<{ key: ApiKey; apiKey: string }>;
  /** A project's keys in order of creation, also those that are revoked. */
  keys(projectId: string): Promise<ApiKey[]>;
  /** Ends a key at once here, within a second elsewhere; also a second time. Throws 404. */
  revokeKey(projectId: string, keyId: string, by: AuditActor): Promise<ApiKey>;
  /** Makes the project with this id unless it exists: the fixed one of development. */
  ensure(projectId: string, settings: CreateProject): Promise<void>;
}

/** Two operators rarely change one project at once; this many times is then enough. */
const attemptsMax = 8;
const projectBytesMax = 60 * 1024;

/** The admin's verbs over the store. */
export function createProjectAdmin(
  deps: Deps,
  { projectCache, secrets }: { projectCache: ProjectCache; secrets: Secrets },
): ProjectAdmin {
  const now = () => new Date(deps.clock.now()).toISOString();

  async function build(id: string, settings: CreateProject): Promise<Project> {
    const upstream = await seal(id, settings.upstream);
    const stripe = await sealStripe(secrets, id, settings.stripe);
    const stamps = { createdAt: now(), updatedAt: now() };
    return { ...settings, id, upstream, stripe, status: "active", listeners: [], ...stamps };
  }

  function seal(id: string, upstream: CreateProject["upstream"]): Promise<UpstreamSettings | null> {
    return sealUpstream(secrets, id, upstream);
  }

  async function changeStripe(project: Project, given: UpdateProject["stripe"]) {
    const { id, stripe } = project;
    if (given === undefined) return { stripe, events: [] };
    const before = stripe && (await secrets.open(stripe.webhookSecret, projectKey(id)));
    const after = given?.webhookSecret ?? null;
    const { baseUrl } = deps.config;
    const events = stripeChangedEvent(project, { before, after, baseUrl });
    return { stripe: await sealStripe(secrets, id, given), events };
  }

  async function change(projectId: string, alter: AlterProject): Promise<Project> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const snapshot = await projectCache.refresh(projectId);
      const write = emptyWrite();
      const { project: altered, events } = await alter(snapshot, write);
      const project = { ...altered, updatedAt: now() };
      requireFits(project);
      putProject(write, project, snapshot.version);
      appendEvents(write, project, { events, now: deps.clock.now(), id: deps.id });
      if ((await deps.committer.commit(write)) === null) continue;
      projectCache.forget();
      return project;
    }
    throw new ApiError(503, {
      message: "The project kept changing. Try again.",
      code: "contended",
    });
  }

  function newKey(projectId: string, settings: CreateKey): { key: ApiKey; apiKey: string } {
    const apiKey = `sk_${toBase62(deps.randomBytes(32))}`;
    const key: ApiKey = {
      ...settings,
      id: deps.id("key"),
      projectId,
      suffix: apiKey.slice(-4),
      createdAt: now(),
      revokedAt: null,
    };
    return { key, apiKey };
  }

  function audit(write: Write, projectId: string, deed: AuditAction): void {
    write.sets.push(auditRow(deps, projectId, deed));
  }

  return {
    change,
    async create(settings, by) {
      const project = await build(deps.id("pw"), settings);
      requireFits(project);
      const write = emptyWrite();
      putProject(write, project, null);
      const { key, apiKey } = newKey(project.id, firstKey);
      putApiKey(write, key, hashKey(apiKey));
      const { id: target, name, mode, currency } = project;
      const deed = { by, action: "project.created", target, detail: { name, mode, currency } };
      audit(write, project.id, deed);
      write.sets.push(auditRow(deps, null, deed));
      if ((await deps.committer.commit(write)) === null) throw new Error("a new id was taken");
      return { project, apiKey };
    },
    update: (projectId, changesOf, by) =>
      change(projectId, async ({ project }, write) => {
        const changes = changesOf(project);
        const fields = changedFields(changes);
        if (fields.length === 0) return { project, events: [] };
        const { upstream } = changes;
        const sealed = upstream === undefined ? project.upstream : await seal(projectId, upstream);
        const { stripe, events } = await changeStripe(project, changes.stripe);
        const altered = { ...applyChanges(project, changes), upstream: sealed, stripe };
        const detail = describeChanges(project, altered, changes);
        audit(write, projectId, { by, action: "project.updated", target: projectId, detail });
        return { project: altered, events: [projectUpdatedEvent(project, fields), ...events] };
      }),
    archive: (projectId, by) =>
      change(projectId, ({ project }, write) => {
        if (project.status === "archived") return { project, events: [] };
        audit(write, projectId, { by, action: "project.archived", target: projectId });
        return {
          project: { ...project, status: "archived" },
          events: [projectArchivedEvent(project)],
        };
      }),
    async createKey(projectId, settings, by, alongside) {
      const made = newKey(projectId, settings);
      const { id: target, name, suffix } = made.key;
      const detail = { name, suffix, scopes: [...settings.scopes] };
      await change(projectId, async ({ project }, write) => {
        await alongside?.(write, { id: target, secret: made.apiKey });
        putApiKey(write, made.key, hashKey(made.apiKey));
        audit(write, projectId, { by, action: "key.created", target, detail });
        return { project, events: [secretRotatedEvent(project, suffix)] };
      });
      return made;
    },
    keys: (projectId) => listApiKeys(deps.kv, projectId),
    async revokeKey(projectId, keyId, by) {
      const found = await readApiKey(deps.kv, projectId, keyId);
      if (!found) throw notFound("API key");
      const { name, suffix, revokedAt } = found.key;
      const key = { ...found.key, revokedAt: revokedAt ?? now() };
      await change(projectId, ({ project }, write) => {
        if (revokedAt !== null) return { project, events: [] };
        putApiKey(write, key, null);
        const detail = { name, suffix };
        audit(write, projectId, { by, action: "key.revoked", target: keyId, detail });
        return { project, events: [projectUpdatedEvent(project, ["keys"])] };
      });
      return key;
    },
    async ensure(projectId, settings) {
      const write = emptyWrite();
      putProject(write, await build(projectId, settings), null);
      await deps.committer.commit(write);
    },
  };
}

const firstKey: CreateKey = {
  name: "first key",
  scopes: ["chat", "money", "webhooks"],
  defaultUser: null,
  user: null,
};

/** Throws 400 for what only makes sense where each user's money is the project's to take. */
function requireMode({ mode, stripe, topUpUrl, topUp, trialCredits }: Project): void {
  if (mode === "default") return;
  const faults = {
    stripe: stripe !== null,
    topUpUrl: topUpUrl !== null,
    "topUp.checkoutUrl": topUp.checkoutUrl !== null,
    trialCredits: trialCredits !== "0",
  };
  const [fault] = Object.entries(faults).find(([, given]) => given) ?? [];
  if (fault === undefined) return;
  const message = `In the shared mode wallets are paid into through this server: no '${fault}'.`;
  throw badRequest(fault, message, "mode_conflict");
}

function requireFits(project: Project): void {
  requireMode(project);
  if (JSON.stringify(project).length * 3 < projectBytesMax) return;
  if (utf8Length(JSON.stringify(project)) <= projectBytesMax) return;
  throw badRequest("pricing", `The project is larger than ${projectBytesMax} bytes.`);
}

/** The project with what was given in place of what it had; its secrets are sealed elsewhere. */
export function applyChanges(project: Project, changes: UpdateProject): Project {
  const { upstream: _, stripe: __, pricing = {}, ...settings } = changes;
  return Object.assign({}, project, given(settings), {
    pricing: Object.assign({}, project.pricing, given(pricing)),
  });
}

/** The fields that a change gives. */
function given(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Longer values are only said to have changed, in characters of JSON. */
const shownCharsMax = 256;
const fieldsShownMax = 8;

/**
 * What an update changed, for the audit trail: from what to what, of secrets only that they did.
 */
export function describeChanges(
  before: Project,
  after: Project,
  changes: UpdateProject,
): JsonObject {
  const fields = changedFields(changes);
  const moves = fields.slice(0, fieldsShownMax).flatMap((field) => {
    if (field === "stripe" || field === "upstream") return [];
    const [from, to] = [valueAt(before, field), valueAt(after, field)];
    const [fromText, toText] = [JSON.stringify(from), JSON.stringify(to)];
    if (fromText === toText || fromText.length + toText.length > shownCharsMax) return [];
    return [[field, { from, to }] as const];
  });
  return { fields, ...Object.fromEntries(moves) };
}

/** The value of a field, or of one below `pricing`: as it is stored, which is JSON. */
function valueAt(project: Project, field: string): Json {
  let at: unknown = project;
  for (const part of field.split(".")) at = Object(at)[part];
  return parseJson(JSON.stringify(at));
}
