import { createHash } from "node:crypto";
import { ApiError } from "../base/errors.ts";
import { type Config, isLoopback } from "../config.ts";
import type { Trigger } from "../events/event.ts";
import type { ProjectCache, ProjectSnapshot } from "./project_cache.ts";
import type { ApiKey, Scope } from "./schema.ts";

/** Who calls: a project, by one of its keys. */
export interface Caller {
  snapshot: ProjectSnapshot;
  key: Pick<ApiKey, "id" | "suffix" | "scopes" | "defaultUser" | "user">;
}

/** The fixed key of development. Never stored, and refused from anywhere but this machine. */
export const devApiKey = "sk_dev";
/** The project that it opens. */
export const devProjectId = "pw_00000000000000000000000DEV";

/** Tells callers apart by their `Authorization: Bearer` header. */
export interface Auth {
  /** The caller, if its key has `scope`. Throws 401 without a valid key, 403 without the scope. */
  caller(request: Request, scope: Scope): Promise<Caller>;
  /** Whom a key is of that did not come in the header. Throws 401 for one that opens nothing. */
  opens(request: Request, apiKey: string): Promise<Caller>;
  /** Throws 401 unless the bearer is `ADMIN_KEY`. */
  admin(request: Request): void;
  /** Whether a text is `ADMIN_KEY`. */
  isAdminKey(text: string): boolean;
}

/** The owner's own system, as the cause of an event. */
export function byKey({ key }: Caller): Trigger {
  return { source: "api", actorType: "paywall-owner", actorId: key.id };
}

/** Auth over the projects' keys. */
export function createAuth(config: Config, projectCache: ProjectCache): Auth {
  const isAdminKey = (text: string) => config.adminKey?.is(text) ?? false;
  const opens = (request: Request, apiKey: string) =>
    config.dev && apiKey === devApiKey
      ? devCaller(request, projectCache)
      : keyCaller(apiKey, projectCache);
  return {
    opens,
    isAdminKey,
    async caller(request, scope) {
      const caller = await opens(request, bearer(request));
      if (!caller.key.scopes.includes(scope)) {
        throw new ApiError(403, {
          message: `This API key lacks the scope '${scope}'.`,
          type: "permission_error",
          code: "insufficient_scope",
        });
      }
      return caller;
    },
    admin(request) {
      if (!isAdminKey(bearer(request))) throw invalidKey();
    },
  };
}

/** Longest key that is looked for, in characters: ours are shorter, and some are remembered. */
const apiKeyCharsMax = 128;
const hashes = new Map<string, string>();
const hashesMax = 1_000;

/** The same as `hashKey`, worked out once for the keys in use. */
function knownHash(token: string): string {
  const known = hashes.get(token);
  if (known !== undefined) return known;
  const hash = hashKey(token);
  if (hashes.size >= hashesMax) hashes.clear();
  hashes.set(token, hash);
  return hash;
}

async function keyCaller(token: string, projectCache: ProjectCache): Promise<Caller> {
  if (token.length > apiKeyCharsMax) throw invalidKey();
  const access = await projectCache.access(knownHash(token));
  if (!access || access.key.revokedAt) throw invalidKey();
  return access;
}

const proxyHeader = /^((x-)?forwarded|via$|x-real-ip$|cf-)/;

/** A page in a browser or a tunnel would carry these headers: the known key is not for them. */
async function devCaller(request: Request, projectCache: ProjectCache): Promise<Caller> {
  const { headers } = request;
  const origin = headers.get("origin");
  const foreign = [...headers.keys()].some((name) => proxyHeader.test(name)) ||
    !isLoopback(new URL(request.url).hostname) ||
    (origin !== null && !isLoopback(URL.parse(origin)?.hostname ?? ""));
  if (foreign) throw invalidKey();
  const key = {
    id: "key_dev",
    suffix: devApiKey.slice(-4),
    scopes: ["chat" as const, "money" as const, "webhooks" as const],
    defaultUser: null,
    user: null,
  };
  return { snapshot: await projectCache.current(devProjectId), key };
}

function bearer(request: Request): string {
  const header = request.headers.get("authorization");
  const token = header && /^bearer +(\S+) *$/i.exec(header)?.[1];
  if (token) return token;
  throw new ApiError(401, {
    message: "No API key was given. Send it in the header 'Authorization: Bearer YOUR_KEY'.",
    code: "invalid_api_key",
    headers: { "www-authenticate": "Bearer" },
  });
}

function invalidKey(): ApiError {
  return new ApiError(401, {
    message: "The API key is not valid.",
    code: "invalid_api_key",
    headers: { "www-authenticate": "Bearer" },
  });
}

/** How an API key is stored and looked up: SHA-256, in hex. */
export function hashKey(apiKey: string): string {
  return createHash("sha256").update(apiKey).digest("hex");
}
