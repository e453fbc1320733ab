import type { Project } from "./schema.ts";

type Addressed = Pick<Project, "alerts" | "unconfirmedEmails">;

/**
 * Returns which of a project's new addresses for alerts have yet to be confirmed: those that it did
 * not have before, and those that were not confirmed then.
 */
export function unconfirmedAfter(before: Addressed | null, emails: readonly string[]): string[] {
  const confirmed = new Set(before ? confirmedEmails(before) : []);
  return emails.filter((email) => !confirmed.has(email));
}

/** Returns a project's addresses for alerts that their owners have confirmed. */
export function confirmedEmails({ alerts, unconfirmedEmails }: Addressed): string[] {
  const unconfirmed = new Set(unconfirmedEmails);
  return alerts.emails.filter((email) => !unconfirmed.has(email));
}
