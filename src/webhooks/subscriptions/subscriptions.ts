import { badRequest, notFound } from "../../base/errors.ts";
import type { Deps } from "../../deps.ts";
import type { AlongsideWrite, ProjectAdmin } from "../../projects/admin.ts";
import { type AuditActionName, type AuditActor, auditRow } from "../../projects/audit.ts";
import type { ProjectCache } from "../../projects/project_cache.ts";
import { subscriptionKey } from "../../store/keys.ts";
import type { Kv, Write } from "../../store/kv.ts";
import type { Sealed, Secrets } from "../../store/secrets.ts";
import type { Guard } from "../delivery/guard.ts";
import type {
  CreateSubscription,
  OldSecret,
  OperateSubscription,
  Subscription,
  SubscriptionHealth,
} from "../schema.ts";
import { newSecret } from "../delivery/signature.ts";
import {
  listNewestSubscriptions,
  putSubscription,
  readHealth,
  readSubscription,
} from "../store.ts";
import type { SubscriptionView } from "../view.ts";
import type { SubscribedPatterns } from "../../events/event_patterns.ts";
import type { Project } from "../../projects/schema.ts";

/** A subscription with its decrypted secrets, for the time of a delivery. */
export interface OpenSubscription {
  url: string;
  isActive: boolean;
  /** The signing secrets, newest first; several while they overlap. */
  secrets: string[];
  customHeaders: Record<string, string>;
}

/**
 * The operations on subscriptions. Each change also changes the project's version, and is audited.
 */
export interface Subscriptions {
  /** Creates a subscription and returns its secret, which is never shown again. Throws 400. */
  create(
    projectId: string,
    settings: CreateSubscription,
    by: AuditActor,
    alongside?: AlongsideWrite,
  ): Promise<{ view: SubscriptionView; secret: string }>;
  /** Lists all active subscriptions, and the newest of the others, in order of creation. */
  list(projectId: string, status: "active" | "inactive" | null): Promise<SubscriptionView[]>;
  /** Reads a subscription. Throws 404. */
  read(projectId: string, id: string): Promise<SubscriptionView>;
  /**
   * Ends the deliveries of a subscription; its record stays. Repeating it is harmless. Throws 404.
   */
  deactivate(projectId: string, id: string, by: AuditActor): Promise<SubscriptionView>;
  /**
   * Enables a subscription again, or replaces its secret, which is then returned once. Throws 404,
   * 400.
   */
  operate(
    projectId: string,
    id: string,
    wish: OperateSubscription,
    by: AuditActor,
    alongside?: AlongsideWrite,
  ): Promise<{ view: SubscriptionView; secret: string | null }>;
  /** Reads a subscription with its secrets; null when there is none. */
  open(projectId: string, id: string): Promise<OpenSubscription | null>;
}

const suffixChars = 6;
const secretBytes = 32;

interface SubscriptionDeps {
  deps: Deps;
  admin: ProjectAdmin;
  projectCache: ProjectCache;
  secrets: Secrets;
  guard: Guard;
}

/** Creates subscriptions over the store. */
export function createSubscriptions(services: SubscriptionDeps): Subscriptions {
  const { deps, admin, projectCache, secrets, guard } = services;
  const { kv, clock } = deps;
  const now = () => new Date(clock.now()).toISOString();
  const seal = (text: string, projectId: string, id: string) =>
    secrets.seal(text, subscriptionKey(projectId, id));
  const unseal = (sealed: Sealed, { projectId, id }: Subscription) =>
    secrets.open(sealed, subscriptionKey(projectId, id));

  /**
   * Decrypts a subscription's secrets. An old one that no key decrypts no longer signs; the newest
   * must be decrypted.
   */
  async function openAll([newest, ...older]: Sealed[], subscription: Subscription) {
    const opened = await Promise.all(
      older.map((sealed) => unseal(sealed, subscription).catch(() => null)),
    );
    const first = newest ? [await unseal(newest, subscription)] : [];
    return [...first, ...opened.filter((secret) => secret !== null)];
  }

  async function headersOf(subscription: Subscription): Promise<Record<string, string>> {
    const { customHeaders } = subscription;
    return customHeaders ? JSON.parse(await unseal(customHeaders, subscription)) : {};
  }

  async function view(
    subscription: Subscription,
    { consecutiveFailures, lastDeliveredAt, failingSince }: SubscriptionHealth,
  ): Promise<SubscriptionView> {
    const { id, projectId: paywallId, url, events, isActive, description } = subscription;
    const { createdAt, updatedAt, secretSuffix, createdBy, customHeaders } = subscription;
    return {
      id,
      paywallId,
      url,
      events,
      isActive,
      ...(description === null ? {} : { description }),
      ...(customHeaders ? { customHeaders: await headersOf(subscription) } : {}),
      createdAt,
      updatedAt,
      secretSuffix,
      createdBy,
      consecutiveFailures,
      lastDeliveredAt,
      ...(failingSince === undefined ? {} : { failingSince }),
    };
  }

  async function viewAll(subscriptions: Subscription[]): Promise<SubscriptionView[]> {
    const healths = await readHealth(kv, subscriptions);
    return await Promise.all(
      subscriptions.map((subscription, at) => view(subscription, healths[at] ?? noAttempts)),
    );
  }

  /** Changes a subscription, the project's listeners and the audit trail in one write. */
  async function change(
    { projectId, id, by }: { projectId: string; id: string; by: AuditActor },
    alter: (
      before: Subscription,
      write: Write,
    ) => Promise<{ after: Subscription; actions: AuditActionName[] }>,
  ): Promise<Subscription> {
    let changed: Subscription | null = null;
    await admin.change(projectId, async ({ project }, write) => {
      const found = await readSubscription(kv, projectId, id);
      if (!found) throw notFound("subscription");
      const { after, actions } = await alter(found.value, write);
      if (after.isActive && !found.value.isActive) requireSubscriptionSlot(project.listeners);
      changed = { ...after, updatedAt: now() };
      putSubscription(write, changed, found.version);
      for (const action of actions) {
        const detail = { url: changed.url, secretSuffix: changed.secretSuffix };
        write.sets.push(auditRow(deps, projectId, { by, action, target: id, detail }));
      }
      const listeners = withListener(project.listeners, changed);
      return { project: { ...project, listeners }, events: [] };
    });
    return changed ?? unreachable();
  }

  async function viewOne(subscription: Subscription): Promise<SubscriptionView> {
    const [seen] = await viewAll([subscription]);
    return seen ?? unreachable();
  }

  return {
    async create(projectId, settings, by, alongside) {
      const url = guard.checkUrl(settings.url);
      await guard.checkNow(url, projectId);
      const id = deps.id("sub");
      const secret = settings.secret ?? newSecret(deps.randomBytes(secretBytes));
      const { customHeaders } = settings;
      const headers = customHeaders && Object.keys(customHeaders).length > 0
        ? await seal(JSON.stringify(customHeaders), projectId, id)
        : null;
      const subscription: Subscription = {
        id,
        projectId,
        // As it is parsed: what is shown, compared and called is one text.
        url: url.href,
        events: settings.events,
        isActive: true,
        description: settings.description || null,
        customHeaders: headers,
        secret: await seal(secret, projectId, id),
        secretSuffix: secret.slice(-suffixChars),
        oldSecrets: [],
        createdAt: now(),
        updatedAt: now(),
        createdBy: by.actor.id,
      };
      await admin.change(projectId, async ({ project }, write) => {
        await alongside?.(write, { id, secret });
        requireSubscriptionSlot(project.listeners);
        putSubscription(write, subscription, null);
        const detail = { url: subscription.url, events: subscription.events };
        const auditAction = { by, action: "webhook.created" as const, target: id, detail };
        write.sets.push(auditRow(deps, projectId, auditAction));
        const listeners = withListener(project.listeners, subscription);
        return { project: { ...project, listeners }, events: [] };
      });
      return { view: await view(subscription, noAttempts), secret };
    },
    async list(projectId, status) {
      const all = await listRecentSubscriptions(
        kv,
        (await projectCache.current(projectId)).project,
      );
      return await viewAll(
        all.filter(({ isActive }) => status === null || isActive === (status === "active")),
      );
    },
    async read(projectId, id) {
      const found = await readSubscription(kv, projectId, id);
      if (!found) throw notFound("subscription");
      return await viewOne(found.value);
    },
    async deactivate(projectId, id, by) {
      const found = await readSubscription(kv, projectId, id);
      if (!found) throw notFound("subscription");
      if (!found.value.isActive) return await viewOne(found.value);
      const changed = await change({ projectId, id, by }, async (before) => ({
        after: { ...before, isActive: false },
        actions: before.isActive ? ["webhook.deactivated"] : [],
      }));
      return await viewOne(changed);
    },
    async operate(projectId, id, wish, by, alongside) {
      const secret = wish.rotateSecret
        ? wish.secret ?? newSecret(deps.randomBytes(secretBytes))
        : null;
      const changed = await change({ projectId, id, by }, async (before, write) => {
        if (secret !== null) await alongside?.(write, { id, secret });
        const isBack = wish.isActive === true && !before.isActive;
        const actions = [
          ...(isBack ? ["webhook.reenabled" as const] : []),
          ...(secret === null ? [] : ["webhook.rotated" as const]),
        ];
        const kept = { ...before, isActive: before.isActive || isBack };
        if (secret === null) return { after: kept, actions };
        const endsAt = clock.now() + wish.overlapSeconds * 1000;
        const after = {
          ...kept,
          secret: await seal(secret, projectId, id),
          secretSuffix: secret.slice(-suffixChars),
          oldSecrets: retiredSecrets(before, { endsAt, now: clock.now() }),
        };
        return { after, actions };
      });
      return { view: await viewOne(changed), secret };
    },
    async open(projectId, id) {
      const found = await readSubscription(kv, projectId, id);
      if (!found) return null;
      const { url, isActive, secret, oldSecrets } = found.value;
      const older = activeSecrets(oldSecrets, clock.now());
      const live = [secret, ...older.map((old) => old.secret)];
      return {
        url,
        isActive,
        secrets: await openAll(live, found.value),
        customHeaders: await headersOf(found.value),
      };
    },
  };
}

const noAttempts: SubscriptionHealth = { consecutiveFailures: 0, lastDeliveredAt: null };

function unreachable(): never {
  throw new Error("the row that was just written is missing");
}

const activeMax = 100;

/** Returns the project's listeners, with this subscription in its current state. */
function withListener(
  listeners: readonly SubscribedPatterns[],
  { id, events, isActive }: Subscription,
): SubscribedPatterns[] {
  const others = listeners.filter(({ subscriptionId }) => subscriptionId !== id);
  return isActive ? [...others, { subscriptionId: id, events }] : others;
}

/** Throws 400 when the project has the most active subscriptions it may have. */
function requireSubscriptionSlot(listeners: readonly SubscribedPatterns[]): void {
  if (listeners.length < activeMax) return;
  throw badRequest(null, `A project has at most ${activeMax} active subscriptions.`);
}

/** How many old secrets keep signing beside the newest: each adds a signature to every delivery. */
const oldSecretsMax = 4;

/** Returns the old secrets that still sign. */
function activeSecrets(secrets: readonly OldSecret[], now: number): OldSecret[] {
  return secrets.filter(({ endsAt }) => endsAt > now);
}

/** Returns a subscription's old secrets after the newest is replaced: none outlives that one. */
function retiredSecrets(
  { secret, oldSecrets }: Pick<Subscription, "secret" | "oldSecrets">,
  { endsAt, now }: { endsAt: number; now: number },
): OldSecret[] {
  const older = activeSecrets(oldSecrets, now).slice(0, oldSecretsMax - 1);
  return [
    { secret, endsAt },
    ...older.map((old) => ({ ...old, endsAt: Math.min(old.endsAt, endsAt) })),
  ];
}

/**
 * Lists the newest 500 of a project's subscriptions, and older ones that are active, in order of
 * creation: ended ones are without limit, and each has to be decrypted to be shown.
 */
async function listRecentSubscriptions(
  kv: Kv,
  { id, listeners }: Pick<Project, "id" | "listeners">,
): Promise<Subscription[]> {
  const newest = await listNewestSubscriptions(kv, id);
  const shown = new Set(newest.map((subscription) => subscription.id));
  const others = listeners.filter(({ subscriptionId }) => !shown.has(subscriptionId));
  const older = await Promise.all(
    others.map(({ subscriptionId }) => readSubscription(kv, id, subscriptionId)),
  );
  const active = older.flatMap((found) => (found ? [found.value] : []));
  return [...active, ...newest].sort((a, b) => (a.id < b.id ? -1 : 1));
}
