import { BoundedMap } from "../base/bounded_map.ts";
import { devApiKey } from "../base/dev_keys.ts";
import { createHash } from "node:crypto";
import { ApiError } from "../base/errors.ts";
import type { Config } from "../config/config.ts";
import type { Trigger } from "../events/event.ts";
import type { ProjectCache, ProjectSnapshot, ResolvedApiKey } from "./project_cache.ts";
import type { Clock } from "../base/clock.ts";
import { type ApiKey, type Scope, scopes } from "./schema.ts";
import { isFromThisMachine } from "./this_machine.ts";

/** The caller: a project, by one of its keys. */
export interface Caller {
  snapshot: ProjectSnapshot;
  key: Pick<
    ApiKey,
    "id" | "suffix" | "scopes" | "defaultUser" | "user" | "models" | "budget" | "expiresAt"
  >;
}

/** The project of the development key. */
export const devProjectId = "pw_00000000000000000000000DEV";

/** Authenticates callers by `Authorization: Bearer`, or by `x-api-key` or `api-key`. */
export interface Auth {
  /**
   * Returns the caller, if its key has `scope`; without a promise where the key is known. Throws or
   * rejects with 401 without a valid key, 403 without the scope.
   */
  caller(request: Request, scope: Scope): Promise<Caller> | Caller;
  /**
   * Returns the caller for a key that did not come in the header. Throws 401 for an invalid key.
   */
  opens(request: Request, apiKey: string): Promise<Caller> | Caller;
  /** Throws 401 unless the bearer is `ADMIN_KEY`. */
  admin(request: Request): void;
  /** Whether a text equals `ADMIN_KEY`, and the request may use that. */
  isAdminKey(request: Request, text: string): boolean;
  /** Whether there is an operator's key that the request may use: development's only from here. */
  mayOperate(request: Request): boolean;
}

/** Returns the owner's own system as an event's trigger. */
export function byKey({ key }: Caller): Trigger {
  return { source: "api", actorType: "paywall-owner", actorId: key.id };
}

/** Creates authentication by the projects' keys. */
export function createAuth(
  { config, clock }: { config: Config; clock: Pick<Clock, "now"> },
  projectCache: ProjectCache,
): Auth {
  const mayOperate = (request: Request) =>
    config.adminKey !== null && (config.adminKeyOf === "setting" || isFromThisMachine(request));
  const isAdminKey = (request: Request, text: string) =>
    (config.adminKey?.is(text) ?? false) && mayOperate(request);
  const opens = (request: Request, apiKey: string) =>
    config.dev && apiKey === devApiKey
      ? devCaller(request, projectCache)
      : keyCaller(apiKey, projectCache, clock);
  return {
    opens,
    isAdminKey,
    mayOperate,
    caller(request, scope) {
      const caller = opens(request, bearer(request));
      return caller instanceof Promise
        ? caller.then((found) => withScope(found, scope))
        : withScope(caller, scope);
    },
    admin(request) {
      if (!isAdminKey(request, bearer(request))) throw invalidKey();
    },
  };
}

/** The longest key that is looked up, in characters: real keys are shorter, and some are cached. */
const apiKeyCharsMax = 128;
const hashes = new BoundedMap<string, string>(1_000);

/** Returns the same as `hashKey`, cached for the keys in use. */
const knownHash = (token: string) => hashes.getOrMake(token, hashKey);

/** Throws 403 where the caller's key lacks the scope. */
function withScope(caller: Caller, scope: Scope): Caller {
  if (caller.key.scopes.includes(scope)) return caller;
  throw new ApiError(403, {
    message: `This API key lacks the scope '${scope}'.`,
    type: "permission_error",
    code: "insufficient_scope",
  });
}

function keyCaller(
  token: string,
  projectCache: ProjectCache,
  clock: Pick<Clock, "now">,
): Promise<Caller> | Caller {
  if (token.length > apiKeyCharsMax) throw invalidKey();
  const access = projectCache.access(knownHash(token));
  return access instanceof Promise
    ? access.then((found) => usableAccess(found, clock))
    : usableAccess(access, clock);
}

/** Throws 401 for a key that is unknown, revoked or over. */
function usableAccess(access: ResolvedApiKey | null, clock: Pick<Clock, "now">): Caller {
  if (!access || access.key.revokedAt) throw invalidKey();
  if (hasExpired(access.key, clock)) throw invalidKey("The API key has expired.");
  return access;
}

/** Whether a key no longer works, because its time is over. */
export function hasExpired(
  { expiresAt }: Pick<ApiKey, "expiresAt">,
  { now }: Pick<Clock, "now">,
): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= now();
}

async function devCaller(request: Request, projectCache: ProjectCache): Promise<Caller> {
  if (!isFromThisMachine(request)) throw invalidKey();
  const key = {
    id: "key_dev",
    suffix: devApiKey.slice(-4),
    scopes: [...scopes],
    defaultUser: null,
    user: null,
    models: null,
    budget: null,
    expiresAt: null,
  };
  return { snapshot: await projectCache.current(devProjectId), key };
}

/** How a key is sent, and that sending the same again does not help: some clients would go on. */
const refusedKeyHeaders = { "www-authenticate": "Bearer", "x-should-retry": "false" };

/**
 * Returns the key of a request, or null. Clients of Anthropic's and Azure's APIs have their own
 * headers for it.
 */
export function sentKey({ headers }: Request): string | null {
  const header = headers.get("authorization");
  return (header && /^bearer +(\S+) *$/i.exec(header)?.[1]) ||
    (headers.get("x-api-key") ?? headers.get("api-key"))?.trim() || null;
}

function bearer(request: Request): string {
  const token = sentKey(request);
  if (token) return token;
  throw new ApiError(401, {
    message: "No API key was given. Send it in the header 'Authorization: Bearer YOUR_KEY'.",
    code: "invalid_api_key",
    headers: refusedKeyHeaders,
  });
}

function invalidKey(message = "The API key is not valid."): ApiError {
  return new ApiError(401, {
    message,
    code: "invalid_api_key",
    headers: refusedKeyHeaders,
  });
}

/** Returns the form in which an API key is stored and looked up: SHA-256, in hex. */
export function hashKey(apiKey: string): string {
  return createHash("sha256").update(apiKey).digest("hex");
}
