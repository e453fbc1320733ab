import type { Context } from "./context.ts";
import { projectPath } from "./paths.ts";

/** A key of a project with the scope `webhooks`, for what the operator's own key cannot do. */
export interface WebhookKey {
  /** The headers of a call with this key. */
  headers: Record<string, string>;
  /** Revokes the key; `withMade` also ends the subscriptions that were created with it. */
  revoke(withMade: boolean): Promise<void>;
}

/** Creates such a key, which expires by itself after `lastsMs`. */
export async function makeWebhookKey(
  { api }: Context,
  project: string,
  { name, lastsMs }: { name: string; lastsMs: number },
): Promise<WebhookKey> {
  const keys = `${projectPath(project)}/keys`;
  const expiresAt = new Date(Date.now() + lastsMs).toISOString();
  const made = await api.json(keys, { body: { name, scopes: ["webhooks"], expiresAt } });
  return {
    headers: { authorization: `Bearer ${made.apiKey}` },
    async revoke(withMade) {
      const query = withMade ? { made: "true" } : {};
      await api.json(`${keys}/${made.key.id}`, { method: "DELETE", query });
    },
  };
}

// Long enough for a clock that differs from the service's.
const momentMs = 60 * 60 * 1000;

/** Calls `use` with a key of a project that is revoked right after. */
export async function withWebhookKey<T>(
  context: Context,
  project: string,
  { name, use }: { name: string; use: (headers: WebhookKey["headers"]) => Promise<T> },
): Promise<T> {
  const key = await makeWebhookKey(context, project, { name, lastsMs: momentMs });
  try {
    return await use(key.headers);
  } finally {
    // What was done is told in any case: it may be a secret that is shown only once.
    await key.revoke(false).catch(({ message }) =>
      context.note(`The key '${name}' was not revoked, and expires in an hour: ${message}`)
    );
  }
}
