import { badRequest } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { apiKeysPrefix } from "../store/keys.ts";
import type { ApiKey } from "./schema.ts";
import { listApiKeys } from "./store.ts";

/** Whether a key is for that user, or for them where a request names none. */
export function isKeyOf(key: Pick<ApiKey, "user" | "defaultUser">, user: string): boolean {
  return key.user === user || key.defaultUser === user;
}

/**
 * Puts the pseudonym into revoked keys that were a user's, and takes their names out, which may name
 * them too. One in force is for its owner to end.
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
        ? badRequest(null, `API key ${own.id} is this user's: revoke it first.`, "user_has_keys")
        : null;
    },
  };
}
