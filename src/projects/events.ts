import { type NewEvent, newEvent } from "../events/event.ts";
import type { Project, UpdateProject } from "./schema.ts";

function aboutProject({ id, ownerUserId }: Project) {
  return {
    trigger: { source: "api", actorType: "paywall-owner", actorId: ownerUserId },
    subject: { type: "project", id, externalId: null },
  } as const;
}

/** A project's settings or keys have changed. Fields below `pricing` are named with it. */
export function updated(project: Project, fields: string[]): NewEvent {
  const sections = new Set(fields.map((field) => field.split(".", 1)[0] ?? field));
  return newEvent("updated", aboutProject(project), {
    changedFields: fields,
    summarySections: [...sections],
  });
}

/** The fields that a change gives. */
export function changedFields({ pricing, ...changes }: UpdateProject): string[] {
  const given = (fields: object) =>
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  return [...given(changes), ...given(pricing ?? {}).map((name) => `pricing.${name}`)];
}

/** A project takes no more chats, charges and deposits. */
export function archived(project: Project): NewEvent {
  return newEvent("archived", aboutProject(project), { reason: "archived by its owner" });
}

/** A project has one more API key, of which these are the last four characters. */
export function secretRotated(project: Project, secretLastFour: string): NewEvent {
  const about = aboutProject(project);
  const { actorId, actorType } = about.trigger;
  return newEvent("secret.rotated", about, { secretLastFour, actorId, actorType });
}
