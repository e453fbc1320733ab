import { type NewEvent, newEvent } from "../events/event.ts";
import type { Project, UpdateProject } from "./schema.ts";

function aboutProject({ id, ownerUserId }: Project) {
  return {
    trigger: { source: "api", actorType: "paywall-owner", actorId: ownerUserId },
    subject: { type: "project", id, externalId: id },
  } as const;
}

/** Returns the event of changed settings or keys. Fields below `pricing` are named with it. */
export function projectUpdatedEvent(project: Project, fields: string[]): NewEvent {
  const sections = new Set(fields.map((field) => field.split(".", 1)[0] ?? field));
  return newEvent("updated", aboutProject(project), {
    changedFields: fields,
    summarySections: [...sections],
  });
}

/** Returns the names of the fields that a change contains. */
export function givenFields({ pricing, ...changes }: UpdateProject): string[] {
  const given = (fields: object) =>
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  return [...given(changes), ...given(pricing ?? {}).map((name) => `pricing.${name}`)];
}

/** Returns the event of an archived project. */
export function projectArchivedEvent(project: Project): NewEvent {
  return newEvent("archived", aboutProject(project), { reason: "archived by its owner" });
}

/** Returns the event of a new API key, with the last four characters of the key. */
export function secretRotatedEvent(project: Project, secretLastFour: string): NewEvent {
  const about = aboutProject(project);
  const { actorId, actorType } = about.trigger;
  return newEvent("secret.rotated", about, { secretLastFour, actorId, actorType });
}

/** Returns the events of a change of a project's Stripe keys. */
export function stripeChangedEvent(
  project: Project,
  { before, after, baseUrl }: {
    /** The webhook's secrets, separated by commas; null where there is no account. */
    before: string | null;
    after: string | null;
    baseUrl: string;
  },
): NewEvent[] {
  if (before === after) return [];
  const { id, ownerUserId } = project;
  const about = {
    ...aboutProject(project),
    subject: { type: "integration", id: "stripe", externalId: "stripe" } as const,
  };
  const integrationKey = "stripe";
  if (after === null) {
    const data = { integrationKey, disabledBy: ownerUserId };
    return [newEvent("integration.disconnected", about, data)];
  }
  if (before === null) {
    return [newEvent("integration.connected", about, { integrationKey, enabledBy: ownerUserId })];
  }
  return [
    newEvent("integration.stripe.webhook.rotated", about, {
      webhookId: id,
      url: `${baseUrl}/v1/stripe/${id}`,
      secretSuffix: (after.split(",", 1)[0] ?? after).slice(-4),
    }),
  ];
}
