import { badRequest } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { commitUnlessMoved, type Eraser, eraseRows, type Erasure } from "../store/erase.ts";
import { apiKeysPrefix, auditPrefix, projectKey } from "../store/keys.ts";
import type { ApiKey } from "./schema.ts";
import { decodeProject } from "./project_row.ts";
import { listApiKeys } from "./store.ts";
import type { AuditRow } from "./audit.ts";
import { ownLimitsOf, userLimitNames } from "./user_limits.ts";

/** Whether a key is bound to that user, or names them as its default. */
function isKeyOf(key: Pick<ApiKey, "user" | "defaultUser">, user: string): boolean {
  return key.user === user || key.defaultUser === user;
}

/**
 * Replaces a user by the pseudonym in their revoked keys, and removes those keys' names, which may
 * name them too. Active keys have to be revoked by the owner first.
 */
export function createKeyEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return {
    ...eraseRows({
      name: "apiKeys",
      kv,
      committer,
      prefix: ({ projectId }) => apiKeysPrefix(projectId),
      rewrite({ key, value }, { user, pseudonym }) {
        const apiKey = value && fromBytes<ApiKey>(value);
        if (!apiKey || apiKey.revokedAt === null || !isKeyOf(apiKey, user)) return null;
        const named = (name: string | null) => (name === user ? pseudonym : name);
        const { user: bound, defaultUser } = apiKey;
        const renamed: ApiKey = {
          ...apiKey,
          name: "",
          user: named(bound),
          defaultUser: named(defaultUser),
        };
        return { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
      },
    }),
    async refusal({ projectId, user }) {
      const keys = await listApiKeys(kv, projectId);
      const own = keys.find((key) => key.revokedAt === null && isKeyOf(key, user));
      return own
        ? badRequest(
          null,
          `API key ${own.id} belongs to this user. Revoke it first.`,
          "user_has_keys",
        )
        : null;
    },
  };
}

/**
 * Replaces a user by the pseudonym in audit rows about them, and removes the reason, which may name
 * them too; in rows about their keys, the keys' names. The actor, the time and the amount stay.
 * Runs after the keys have the pseudonym.
 */
export function createAuditEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  const name = "audit rows";
  const eraserFor = (keyIds: ReadonlySet<string>) =>
    eraseRows({
      name,
      kv,
      committer,
      prefix: ({ projectId }) => auditPrefix(projectId),
      rewrite({ key, value }, erasure) {
        const row = value && fromBytes<AuditRow>(value);
        const renamed = row && withoutUser(row, erasure, keyIds);
        return renamed && { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
      },
    });
  return {
    name,
    async page(erasure, place, budget) {
      const keys = await listApiKeys(kv, erasure.projectId);
      budget.spend(keys.length);
      const own = keys.filter((key) => isKeyOf(key, erasure.pseudonym));
      return await eraserFor(new Set(own.map(({ id }) => id))).page(erasure, place, budget);
    },
  };
}

/** Returns the row without what names the user; null where nothing does. */
function withoutUser(
  row: AuditRow,
  { user, pseudonym }: Erasure,
  keyIds: ReadonlySet<string>,
): AuditRow | null {
  if (row.target === user) {
    const { reason: _, ...detail } = row.detail;
    return { ...row, target: pseudonym, detail };
  }
  const limits = withoutLimitsOf(row.detail, { user, pseudonym });
  if (limits) return { ...row, detail: limits };
  const { name, ...detail } = row.detail;
  return name !== undefined && keyIds.has(row.target) ? { ...row, detail } : null;
}

/** Replaces the user in changes of their own limits; null where there are none. */
function withoutLimitsOf(
  detail: AuditRow["detail"],
  { user, pseudonym }: Pick<Erasure, "user" | "pseudonym">,
): AuditRow["detail"] | null {
  const path = ownLimitsPath(user);
  const names = new Map(
    ["", ...userLimitNames.map((name) => `.${name}`)].map((end) =>
      [`${path}${end}`, `${ownLimitsPath(pseudonym)}${end}`] as const
    ),
  );
  if (!Object.keys(detail).some((name) => names.has(name))) return null;
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [names.get(name) ?? name, value]),
  );
}

const ownLimitsPath = (user: string) => `limits.users.${user}`;

/** Removes a user's own limits from the project's settings. */
export function createOwnLimitsEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return {
    name: "own limits",
    async page({ projectId, user }, _place, budget) {
      budget.spend(1);
      const row = await kv.get(projectKey(projectId));
      const project = row.value && decodeProject(row.value);
      if (!project || ownLimitsOf(project, user) === null) return { erased: 0, next: null };
      const { [user]: _, ...users } = project.limits.users ?? {};
      const value = toBytes({ ...project, limits: { ...project.limits, users } });
      const landed = await commitUnlessMoved(committer, row, {
        sets: [{ key: row.key, value }],
        deletes: [],
      });
      return { erased: landed ? 1 : 0, next: null, waiting: !landed };
    },
  };
}
