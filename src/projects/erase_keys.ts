import { badRequest } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { apiKeysPrefix } from "../store/keys.ts";
import type { ApiKey } from "./schema.ts";
import { listApiKeys } from "./store.ts";

/** Puts the pseudonym into revoked keys that were a user's. One in force is for its owner to end. */
export function createKeyEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  const isOf = (key: ApiKey, user: string) => key.user === user || key.defaultUser === user;
  return {
    ...eraseRows({
      name: "apiKeys",
      kv,
      committer,
      prefix: ({ projectId }) => apiKeysPrefix(projectId),
      rewrite({ key, value }, { user, pseudonym }) {
        const apiKey = value && fromBytes<ApiKey>(value);
        if (!apiKey || apiKey.revokedAt === null || !isOf(apiKey, user)) return null;
        const named = (name: string | null) => (name === user ? pseudonym : name);
        const { user: bound, defaultUser } = apiKey;
        const renamed: ApiKey = {
          ...apiKey,
          user: named(bound),
          defaultUser: named(defaultUser),
        };
        return { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
      },
    }),
    async refusal({ projectId, user }) {
      const keys = await listApiKeys(kv, projectId);
      const own = keys.find((key) => key.revokedAt === null && isOf(key, user));
      return own
        ? badRequest(null, `API key ${own.id} is this user's: revoke it first.`, "user_has_keys")
        : null;
    },
  };
}
