import type { OwnLimits, Project, UserLimits } from "./schema.ts";

/** The names of a user's limits, in the order in which they are shown. */
export const userLimitNames = [
  "requestsPerMinute",
  "tokensPerMinute",
  "concurrent",
  "spendPerDay",
  "spendPerMonth",
] as const satisfies readonly (keyof UserLimits)[];

/** Returns a user's own limits; null where they have none. */
export function ownLimitsOf({ limits }: Pick<Project, "limits">, user: string): OwnLimits | null {
  const { users } = limits;
  return users !== undefined && Object.hasOwn(users, user) ? users[user] ?? null : null;
}

/** Returns the limits that hold for a user: their own, and for the rest those of every user. */
export function userLimitsOf(project: Pick<Project, "limits">, user: string): UserLimits {
  const own = ownLimitsOf(project, user);
  const { user: usual } = project.limits;
  if (!own) return usual;
  const { requestsPerMinute, tokensPerMinute, concurrent, spendPerDay, spendPerMonth } = own;
  return {
    requestsPerMinute: chosen(requestsPerMinute, usual.requestsPerMinute),
    tokensPerMinute: chosen(tokensPerMinute, usual.tokensPerMinute),
    concurrent: chosen(concurrent, usual.concurrent),
    spendPerDay: chosen(spendPerDay, usual.spendPerDay),
    spendPerMonth: chosen(spendPerMonth, usual.spendPerMonth),
  };
}

function chosen<Value extends string | number>(
  own: Value | "unlimited" | undefined,
  usual: Value | null,
): Value | null {
  if (own === undefined) return usual;
  return own === "unlimited" ? null : own;
}
