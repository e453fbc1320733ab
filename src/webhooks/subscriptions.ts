import { notFound } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { Alongside, ProjectAdmin } from "../projects/admin.ts";
import { auditRow, type By } from "../projects/audit.ts";
import type { Directory } from "../projects/directory.ts";
import { subscriptionKey } from "../store/keys.ts";
import type { Write } from "../store/kv.ts";
import type { Sealed, Secrets } from "../store/secrets.ts";
import type { Guard } from "./guard.ts";
import { listening, requireRoom } from "./listening.ts";
import { livingSecrets, replacedSecrets } from "./old_secrets.ts";
import type { CreateSubscription, Health, OperateSubscription, Subscription } from "./schema.ts";
import { newSecret } from "./signature.ts";
import { listShown } from "./shown.ts";
import { putSubscription, readHealth, readSubscription } from "./store.ts";
import type { SubscriptionView } from "./view.ts";

/** A subscription with its secrets in the clear: for the moment of a delivery. */
export interface OpenSubscription {
  url: string;
  isActive: boolean;
  /** Newest first; more than one while they overlap. */
  secrets: string[];
  customHeaders: Record<string, string>;
}

/** The verbs of subscriptions. All that change one move the project's version, and are audited. */
export interface Subscriptions {
  /** Makes one, and gives its secret this once. Throws 400. */
  create(
    projectId: string,
    settings: CreateSubscription,
    by: By,
    alongside?: Alongside,
  ): Promise<{ view: SubscriptionView; secret: string }>;
  /** All that are active, and of the others the newest, in order of creation. */
  list(projectId: string, status: "active" | "inactive" | null): Promise<SubscriptionView[]>;
  /** Throws 404. */
  read(projectId: string, id: string): Promise<SubscriptionView>;
  /** Ends deliveries; the record stays. Harmless a second time. Throws 404. */
  deactivate(projectId: string, id: string, by: By): Promise<SubscriptionView>;
  /** Re-enables, rotates the secret; a new secret is given this once. Throws 404, 400. */
  operate(
    projectId: string,
    id: string,
    wish: OperateSubscription,
    by: By,
    alongside?: Alongside,
  ): Promise<{ view: SubscriptionView; secret: string | null }>;
  /** With its secrets; null when there is none. */
  open(projectId: string, id: string): Promise<OpenSubscription | null>;
}

const suffixChars = 6;
const secretBytes = 32;

interface SubscriptionRooms {
  deps: Deps;
  admin: ProjectAdmin;
  directory: Directory;
  secrets: Secrets;
  guard: Guard;
}

/** Subscriptions over the store. */
export function createSubscriptions(rooms: SubscriptionRooms): Subscriptions {
  const { deps, admin, directory, secrets, guard } = rooms;
  const { kv, clock } = deps;
  const now = () => new Date(clock.now()).toISOString();
  const seal = (text: string, projectId: string, id: string) =>
    secrets.seal(text, subscriptionKey(projectId, id));
  const unseal = (sealed: Sealed, { projectId, id }: Subscription) =>
    secrets.open(sealed, subscriptionKey(projectId, id));

  async function headersOf(subscription: Subscription): Promise<Record<string, string>> {
    const { customHeaders } = subscription;
    return customHeaders ? JSON.parse(await unseal(customHeaders, subscription)) : {};
  }

  async function view(subscription: Subscription, health: Health): Promise<SubscriptionView> {
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
      ...health,
    };
  }

  async function viewAll(subscriptions: Subscription[]): Promise<SubscriptionView[]> {
    const healths = await readHealth(kv, subscriptions);
    return await Promise.all(
      subscriptions.map((subscription, at) => view(subscription, healths[at] ?? unhurt)),
    );
  }

  /** Changes one subscription, who listens, and the audit trail, in one write. */
  async function change(
    { projectId, id, by }: { projectId: string; id: string; by: By },
    alter: (
      before: Subscription,
      write: Write,
    ) => Promise<{ after: Subscription; actions: string[] }>,
  ): Promise<Subscription> {
    let changed: Subscription | null = null;
    await admin.change(projectId, async ({ project }, write) => {
      const found = await readSubscription(kv, projectId, id);
      if (!found) throw notFound("subscription");
      const { after, actions } = await alter(found.value, write);
      if (after.isActive && !found.value.isActive) requireRoom(project.listeners);
      changed = { ...after, updatedAt: now() };
      putSubscription(write, changed, found.version);
      for (const action of actions) {
        const detail = { url: changed.url, secretSuffix: changed.secretSuffix };
        write.sets.push(auditRow(deps, projectId, { by, action, target: id, detail }));
      }
      const listeners = listening(project.listeners, changed);
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
      await guard.checkNow(guard.checkUrl(settings.url));
      const id = deps.id("sub");
      const secret = settings.secret ?? newSecret(deps.randomBytes(secretBytes));
      const { customHeaders } = settings;
      const headers = customHeaders && Object.keys(customHeaders).length > 0
        ? await seal(JSON.stringify(customHeaders), projectId, id)
        : null;
      const subscription: Subscription = {
        id,
        projectId,
        url: settings.url,
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
        requireRoom(project.listeners);
        putSubscription(write, subscription, null);
        const detail = { url: subscription.url, events: subscription.events };
        const deed = { by, action: "webhook.created", target: id, detail };
        write.sets.push(auditRow(deps, projectId, deed));
        const listeners = listening(project.listeners, subscription);
        return { project: { ...project, listeners }, events: [] };
      });
      return { view: await view(subscription, unhurt), secret };
    },
    async list(projectId, status) {
      const all = await listShown(kv, (await directory.current(projectId)).project);
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
          ...(isBack ? ["webhook.reenabled"] : []),
          ...(secret === null ? [] : ["webhook.rotated"]),
        ];
        const kept = { ...before, isActive: before.isActive || isBack };
        if (secret === null) return { after: kept, actions };
        const endsAt = clock.now() + wish.overlapSeconds * 1000;
        const after = {
          ...kept,
          secret: await seal(secret, projectId, id),
          secretSuffix: secret.slice(-suffixChars),
          oldSecrets: replacedSecrets(before, { endsAt, now: clock.now() }),
        };
        return { after, actions };
      });
      return { view: await viewOne(changed), secret };
    },
    async open(projectId, id) {
      const found = await readSubscription(kv, projectId, id);
      if (!found) return null;
      const { url, isActive, secret, oldSecrets } = found.value;
      const older = livingSecrets(oldSecrets, clock.now());
      const live = [secret, ...older.map((old) => old.secret)];
      return {
        url,
        isActive,
        secrets: await Promise.all(live.map((sealed) => unseal(sealed, found.value))),
        customHeaders: await headersOf(found.value),
      };
    },
  };
}

const unhurt: Health = { consecutiveFailures: 0, lastDeliveredAt: null };

function unreachable(): never {
  throw new Error("what was just written is there");
}
