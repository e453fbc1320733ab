import { ApiError, badRequest, notFound } from "../base/errors.ts";
import { toBase62 } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import type { NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import { projectKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { hashKey } from "./auth.ts";
import type { Directory, ProjectSnapshot } from "./directory.ts";
import { archived, changedFields, secretRotated, stripeChanged, updated } from "./events.ts";
import type {
  ApiKey,
  CreateKey,
  CreateProject,
  Project,
  StripeKeys,
  UpdateProject,
  Upstream,
} from "./schema.ts";
import { putApiKey, putProject, readApiKey } from "./store.ts";

/** Computes what a project becomes and what that causes; may add rows of its own to the write. */
export type Alter = (snapshot: ProjectSnapshot, write: Write) => Promise<Altered> | Altered;
/** A project as it shall be, and the events of it. */
export interface Altered {
  project: Project;
  events: readonly NewEvent[];
}

/** What an operator does to projects and keys. Every change moves the project's version. */
export interface ProjectAdmin {
  /** Commits one change of a project, on the version that it was computed from. Throws 404. */
  change(projectId: string, alter: Alter): Promise<Project>;
  /** Makes a project and its first key, which is returned this once. */
  create(settings: CreateProject): Promise<{ project: Project; apiKey: string }>;
  /** Replaces what is given. Throws 404, 400. */
  update(projectId: string, changes: UpdateProject): Promise<Project>;
  /** Ends new chats, charges and deposits; reads go on. Throws 404. */
  archive(projectId: string): Promise<Project>;
  /** One more key, returned this once. Throws 404. */
  createKey(projectId: string, settings: CreateKey): Promise<{ key: ApiKey; apiKey: string }>;
  /** Ends a key at once here, within a second elsewhere; also a second time. Throws 404. */
  revokeKey(projectId: string, keyId: string): Promise<ApiKey>;
  /** Makes the project with this id unless it exists: the fixed one of development. */
  ensure(projectId: string, settings: CreateProject): Promise<void>;
}

/** Two operators rarely change one project at once; this many times is then enough. */
const attemptsMax = 8;
const projectBytesMax = 60 * 1024;

/** The admin's verbs over the store. */
export function createProjectAdmin(
  deps: Deps,
  { directory, secrets }: { directory: Directory; secrets: Secrets },
): ProjectAdmin {
  const now = () => new Date(deps.clock.now()).toISOString();

  async function build(id: string, settings: CreateProject): Promise<Project> {
    const upstream = await seal(id, settings.upstream);
    const stripe = await sealStripe(secrets, id, settings.stripe);
    const stamps = { createdAt: now(), updatedAt: now() };
    return { ...settings, id, upstream, stripe, status: "active", listeners: [], ...stamps };
  }

  function seal(id: string, upstream: CreateProject["upstream"]): Promise<Upstream | null> {
    return sealUpstream(secrets, id, upstream);
  }

  async function changeStripe(project: Project, given: UpdateProject["stripe"]) {
    const { id, stripe } = project;
    if (given === undefined) return { stripe, events: [] };
    const before = stripe && (await secrets.open(stripe.webhookSecret, projectKey(id)));
    const after = given?.webhookSecret ?? null;
    const { baseUrl } = deps.config;
    const events = stripeChanged(project, { before, after, baseUrl });
    return { stripe: await sealStripe(secrets, id, given), events };
  }

  async function change(projectId: string, alter: Alter): Promise<Project> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const snapshot = await directory.refresh(projectId);
      const write = emptyWrite();
      const { project: altered, events } = await alter(snapshot, write);
      const project = { ...altered, updatedAt: now() };
      requireFits(project);
      putProject(write, project, snapshot.version);
      appendEvents(write, project, { events, now: deps.clock.now(), id: deps.id });
      if ((await deps.committer.commit(write)) === null) continue;
      directory.forget();
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

  return {
    change,
    async create(settings) {
      const project = await build(deps.id("pw"), settings);
      requireFits(project);
      const write = emptyWrite();
      putProject(write, project, null);
      const { key, apiKey } = newKey(project.id, firstKey);
      putApiKey(write, key, hashKey(apiKey));
      if ((await deps.committer.commit(write)) === null) throw new Error("a new id was taken");
      return { project, apiKey };
    },
    update: (projectId, changes) =>
      change(projectId, async ({ project }) => {
        const { upstream } = changes;
        const sealed = upstream === undefined ? project.upstream : await seal(projectId, upstream);
        const { stripe, events } = await changeStripe(project, changes.stripe);
        const altered = { ...applyChanges(project, changes), upstream: sealed, stripe };
        return { project: altered, events: [updated(project, changedFields(changes)), ...events] };
      }),
    archive: (projectId) =>
      change(projectId, ({ project }) => ({
        project: { ...project, status: "archived" },
        events: project.status === "archived" ? [] : [archived(project)],
      })),
    async createKey(projectId, settings) {
      const made = newKey(projectId, settings);
      await change(projectId, ({ project }, write) => {
        putApiKey(write, made.key, hashKey(made.apiKey));
        return { project, events: [secretRotated(project, made.key.suffix)] };
      });
      return made;
    },
    async revokeKey(projectId, keyId) {
      const found = await readApiKey(deps.kv, projectId, keyId);
      if (!found) throw notFound("API key");
      const key = { ...found.key, revokedAt: found.key.revokedAt ?? now() };
      await change(projectId, ({ project }, write) => {
        putApiKey(write, key, null);
        return { project, events: found.key.revokedAt ? [] : [updated(project, ["keys"])] };
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

async function sealUpstream(
  secrets: Secrets,
  projectId: string,
  upstream: CreateProject["upstream"],
): Promise<Upstream | null> {
  if (!upstream) return null;
  const { apiKey, ...rest } = upstream;
  return { ...rest, apiKey: apiKey ? await secrets.seal(apiKey, projectKey(projectId)) : null };
}

async function sealStripe(
  secrets: Secrets,
  projectId: string,
  keys: CreateProject["stripe"],
): Promise<StripeKeys | null> {
  if (!keys) return null;
  const place = projectKey(projectId);
  return {
    secretKey: await secrets.seal(keys.secretKey, place),
    webhookSecret: await secrets.seal(keys.webhookSecret, place),
  };
}

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
  if (new TextEncoder().encode(JSON.stringify(project)).length <= projectBytesMax) return;
  throw badRequest("pricing", `The project is larger than ${projectBytesMax} bytes.`);
}

/** The project with what was given in place of what it had. */
function applyChanges(project: Project, changes: UpdateProject): Project {
  const given = <T>(value: T | undefined, kept: T): T => (value === undefined ? kept : value);
  const { pricing } = changes;
  return {
    ...project,
    name: given(changes.name, project.name),
    ownerUserId: given(changes.ownerUserId, project.ownerUserId),
    topUpUrl: given(changes.topUpUrl, project.topUpUrl),
    userSource: given(changes.userSource, project.userSource),
    maxOutputTokens: given(changes.maxOutputTokens, project.maxOutputTokens),
    allowedFields: given(changes.allowedFields, project.allowedFields),
    billingEvents: given(changes.billingEvents, project.billingEvents),
    messages: given(changes.messages, project.messages),
    topUp: given(changes.topUp, project.topUp),
    trialCredits: given(changes.trialCredits, project.trialCredits),
    lowBalance: given(changes.lowBalance, project.lowBalance),
    limits: given(changes.limits, project.limits),
    pricing: {
      catalogue: given(pricing?.catalogue, project.pricing.catalogue),
      markupPercent: given(pricing?.markupPercent, project.pricing.markupPercent),
      requestFee: given(pricing?.requestFee, project.pricing.requestFee),
      models: given(pricing?.models, project.pricing.models),
    },
  };
}
