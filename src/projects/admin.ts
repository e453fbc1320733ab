import { ApiError, badRequest, notFound } from "../base/errors.ts";
import { toBase62 } from "../base/ids.ts";
import { utf8Length } from "../base/utf8.ts";
import type { Deps } from "../deps.ts";
import type { NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import { projectKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { unconfirmedAfter } from "./alert_emails.ts";
import { describeChanges } from "./describe_changes.ts";
import { type AuditAction, type AuditActor, auditRow } from "./audit.ts";
import { hashKey } from "./auth.ts";
import type { ProjectCache, ProjectSnapshot } from "./project_cache.ts";
import {
  givenFields,
  projectArchivedEvent,
  projectUpdatedEvent,
  secretRotatedEvent,
  stripeChangedEvent,
} from "./events.ts";
import { appScopes } from "./schema.ts";
import type { ApiKey, CreateKey, CreateProject, Project, UpdateProject } from "./schema.ts";
import { completeTopUp, paysAtStripe, requirePayable } from "./top_up.ts";
import { createSettingsSealer } from "./seal_settings.ts";
import { readInstanceUpstreams } from "./instance_upstreams.ts";
import { requireTargets } from "./routes_check.ts";
import { listApiKeys, putApiKey, putProject, readApiKey } from "./store.ts";

/** Computes a project's new state and its events; may add rows to the write. */
type AlterProject = (
  snapshot: ProjectSnapshot,
  write: Write,
) => Promise<AlteredProject> | AlteredProject;
/**
 * Adds a caller's rows to the write that creates something with a secret, so that all or nothing is
 * written. What it throws cancels the operation.
 */
export type AlongsideWrite = (write: Write, made: { id: string; secret: string }) => Promise<void>;

/**
 * Revokes a key with the keys and the subscriptions that were made with it; returns their ids.
 * Throws 404.
 */
export type RevokeWithMade = (
  projectId: string,
  keyId: string,
  by: AuditActor,
) => Promise<{ key: ApiKey; made: string[] }>;

/** A new project, with the key of its app and the key that opens its console. */
interface MadeProject {
  project: Project;
  apiKey: string;
  ownerKey: string;
}

/** A project's new state, and the events of the change. */
interface AlteredProject {
  project: Project;
  events: readonly NewEvent[];
}

/**
 * The operations of operators and owners on projects and keys. Every change moves the project's
 * version, and writes a row to its audit trail that names the actor.
 */
export interface ProjectAdmin {
  /**
   * Commits one change of a project, checked against the version that it was computed from. The
   * caller writes the audit row. Throws 404.
   */
  change(projectId: string, alter: AlterProject): Promise<Project>;
  /** Creates a project and its first keys, which are returned only once. */
  create(settings: CreateProject, by: AuditActor): Promise<MadeProject>;
  /**
   * Applies what `changesOf` returns for the current project. Values that are as before emit
   * nothing. Throws 404, 400, and what `changesOf` throws.
   */
  update(
    projectId: string,
    changesOf: (project: Project) => UpdateProject,
    by: AuditActor,
  ): Promise<Project>;
  /** Refuses new calls, charges and deposits from now on; reads continue to work. Throws 404. */
  archive(projectId: string, by: AuditActor): Promise<Project>;
  /** Creates another key, which is returned only once. Throws 404. */
  createKey(
    projectId: string,
    settings: CreateKey,
    by: AuditActor,
    alongside?: AlongsideWrite,
  ): Promise<{ key: ApiKey; apiKey: string }>;
  /** Lists a project's keys in order of creation, including revoked ones. */
  keys(projectId: string): Promise<ApiKey[]>;
  /**
   * Revokes a key: at once in this process, within a second in others. Repeating it is harmless.
   * Throws 404.
   */
  revokeKey(projectId: string, keyId: string, by: AuditActor): Promise<ApiKey>;
  /** Revokes the keys that a key has made, and those that they have made; returns their ids. */
  revokeMade(projectId: string, keyId: string, by: AuditActor): Promise<string[]>;
  /** Creates the project with this id unless it exists: the fixed project of development. */
  ensure(projectId: string, settings: CreateProject): Promise<void>;
}

/** Two operators rarely change one project at once, so this many attempts suffice. */
const projectBytesMax = 60 * 1024;

/** Creates the project operations over the store. */
export function createProjectAdmin(
  deps: Deps,
  { projectCache, secrets }: { projectCache: ProjectCache; secrets: Secrets },
): ProjectAdmin {
  const now = () => new Date(deps.clock.now()).toISOString();
  const instance = readInstanceUpstreams(deps.config);

  async function build(id: string, settings: CreateProject): Promise<Project> {
    const seal = createSettingsSealer(secrets, id);
    const upstream = await seal.upstream(settings.upstream, null);
    const upstreams = await seal.upstreams(settings.upstreams, {});
    const stripe = await seal.stripe(settings.stripe, null);
    const stamps = { createdAt: now(), updatedAt: now() };
    const topUp = completeTopUp(settings.topUp, settings.currency);
    const unconfirmedEmails = unconfirmedAfter(null, settings.alerts.emails);
    const given = { ...settings, id, upstream, upstreams, stripe, topUp, unconfirmedEmails };
    return { ...given, status: "active", listeners: [], ...stamps };
  }

  /** The settings with secrets after a change, and the events of Stripe's. */
  async function changeSecrets(project: Project, { upstream, upstreams, stripe }: UpdateProject) {
    const seal = createSettingsSealer(secrets, project.id);
    const sealed = {
      upstream: upstream === undefined
        ? project.upstream
        : await seal.upstream(upstream, project.upstream),
      upstreams: upstreams === undefined
        ? project.upstreams
        : await seal.upstreams(upstreams, project.upstreams),
      stripe: stripe === undefined ? project.stripe : await seal.stripe(stripe, project.stripe),
    };
    // One that no key decrypts is replaced like any other: that is how it is mended.
    const open = async (keys: Project["stripe"]) =>
      keys && await secrets.open(keys.webhookSecret, projectKey(project.id)).catch(() => null);
    const { baseUrl } = deps.config;
    const events = stripe === undefined ? [] : stripeChangedEvent(project, {
      before: await open(project.stripe),
      after: await open(sealed.stripe),
      baseUrl,
    });
    return { sealed, events };
  }

  /** Amounts stay until they are changed, or Stripe is to take them: the server may do so now. */
  function requireChangePayable(before: Project, after: Project): void {
    const isStripe = paysAtStripe(deps.config, after);
    const isSame = JSON.stringify(before.topUp) === JSON.stringify(after.topUp);
    if (isSame && isStripe === paysAtStripe(deps.config, before)) return;
    requirePayable(after, isStripe);
  }

  async function change(projectId: string, alter: AlterProject): Promise<Project> {
    for await (const _ of attemptsToWrite(deps)) {
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

  function newKey(
    projectId: string,
    settings: CreateKey,
    by: AuditActor,
  ): { key: ApiKey; apiKey: string } {
    const apiKey = `sk_${toBase62(deps.randomBytes(32))}`;
    const key: ApiKey = {
      ...settings,
      id: deps.id("key"),
      projectId,
      suffix: apiKey.slice(-4),
      createdAt: now(),
      revokedAt: null,
      createdBy: by.actor.id,
    };
    return { key, apiKey };
  }

  async function revoke(found: ApiKey, by: AuditActor): Promise<ApiKey> {
    const { id: target, projectId, name, suffix, revokedAt } = found;
    const key = { ...found, revokedAt: revokedAt ?? now() };
    await change(projectId, ({ project }, write) => {
      if (revokedAt !== null) return { project, events: [] };
      putApiKey(write, key, null);
      audit(write, projectId, { by, action: "key.revoked", target, detail: { name, suffix } });
      return { project, events: [projectUpdatedEvent(project, ["keys"])] };
    });
    return key;
  }

  function audit(write: Write, projectId: string, auditAction: AuditAction): void {
    write.sets.push(auditRow(deps, projectId, auditAction));
  }

  return {
    change,
    async create(settings, by) {
      const project = await build(deps.id("pw"), settings);
      requireFits(project);
      requireTargets(project, instance.upstreams);
      requirePayable(project, paysAtStripe(deps.config, project));
      const write = emptyWrite();
      putProject(write, project, null);
      const [app, owner] = firstKeys.map((settings) => newKey(project.id, settings, by));
      for (const made of [app, owner]) if (made) putApiKey(write, made.key, hashKey(made.apiKey));
      const { id: target, name, mode, currency } = project;
      const auditAction = {
        by,
        action: "project.created" as const,
        target,
        detail: { name, mode, currency },
      };
      audit(write, project.id, auditAction);
      write.sets.push(auditRow(deps, null, auditAction));
      if ((await deps.committer.commit(write)) === null) throw new Error("a new id already exists");
      return { project, apiKey: app?.apiKey ?? "", ownerKey: owner?.apiKey ?? "" };
    },
    update: (projectId, changesOf, by) =>
      change(projectId, async ({ project }, write) => {
        const changes = changesOf(project);
        const { sealed, events } = await changeSecrets(project, changes);
        const { emails } = changes.alerts ?? project.alerts;
        const unconfirmedEmails = unconfirmedAfter(project, emails);
        const altered = { ...applyChanges(project, changes), ...sealed, unconfirmedEmails };
        const { fields, parts } = describeChanges(project, altered, givenFields(changes));
        if (fields.length === 0) return { project, events: [] };
        // What the instance has taken away since hinders no other change.
        if (fields.includes("routes") || fields.includes("upstreams")) {
          requireTargets(altered, instance.upstreams);
        }
        requireChangePayable(project, altered);
        for (const detail of parts) {
          audit(write, projectId, { by, action: "project.updated", target: projectId, detail });
        }
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
      const made = newKey(projectId, settings, by);
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
      return await revoke(found, by);
    },
    async revokeMade(projectId, keyId, by) {
      const all = await listApiKeys(deps.kv, projectId);
      const revoked = madeBy(all, keyId);
      for (const key of revoked) await revoke(key, by);
      return revoked.map(({ id }) => id);
    },
    async ensure(projectId, settings) {
      const write = emptyWrite();
      putProject(write, await build(projectId, settings), null);
      await deps.committer.commit(write);
    },
  };
}

const anyUse = { defaultUser: null, user: null, expiresAt: null, models: null, budget: null };
const firstKeys: readonly CreateKey[] = [
  { name: "first key", scopes: [...appScopes], ...anyUse },
  { name: "owner", scopes: ["owner"], ...anyUse },
];

/** The keys that a key has made, directly or by others. */
function madeBy(keys: readonly ApiKey[], keyId: string): ApiKey[] {
  const makers = new Set([keyId]);
  // A key is listed after the one that made it.
  return keys.filter(({ id, createdBy }) => {
    const isMade = makers.has(createdBy);
    if (isMade) makers.add(id);
    return isMade;
  });
}

/** Throws 400 for settings that only make sense where users' money belongs to the project. */
function requireMode({ mode, stripe, topUpUrl, topUp, trialCredits }: Project): void {
  if (mode === "default") return;
  const faults = {
    stripe: stripe !== null,
    topUpUrl: topUpUrl !== null,
    "topUp.checkoutUrl": topUp.checkoutUrl !== null,
    trialCredits: trialCredits !== "0",
  };
  const [setting] = Object.entries(faults).find(([, given]) => given) ?? [];
  if (setting === undefined) return;
  const message =
    `In the shared mode, users pay into wallets through this server: '${setting}' cannot be set.`;
  throw badRequest(setting, message, "mode_conflict");
}

function requireFits(project: Project): void {
  requireMode(project);
  if (JSON.stringify(project).length * 3 < projectBytesMax) return;
  if (utf8Length(JSON.stringify(project)) <= projectBytesMax) return;
  throw badRequest("pricing", `The project's settings exceed ${projectBytesMax} bytes.`);
}

/** Returns the project with the given fields replaced; secrets are encrypted elsewhere. */
function applyChanges(project: Project, changes: UpdateProject): Project {
  const { upstream: _, upstreams: __, stripe: ___, pricing = {}, topUp, ...settings } = changes;
  return Object.assign({}, project, given(settings), {
    pricing: Object.assign({}, project.pricing, given(pricing)),
    topUp: topUp === undefined ? project.topUp : completeTopUp(topUp, project.currency),
  });
}

/** The fields that a change contains. */
function given(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
