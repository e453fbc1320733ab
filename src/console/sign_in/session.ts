import { isGoingOn } from "../../base/lasting.ts";
import { toBase64Url } from "../../base/base64.ts";
import { createHash, createHmac } from "node:crypto";
import { ApiError } from "../../base/errors.ts";
import { cookieValue } from "../../base/request.ts";
import { Secret } from "../../base/secret.ts";
import type { Deps } from "../../deps.ts";
import {
  type AuditActor,
  auditRow,
  byApiKey,
  byOperator,
  fromAddress,
} from "../../projects/audit.ts";
import { devApiKey } from "../../base/dev_keys.ts";
import { type Auth, hasExpired, hashKey } from "../../projects/auth.ts";
import type { ProjectCache } from "../../projects/project_cache.ts";
import { emptyWrite } from "../../store/kv.ts";
import { createSecrets, type Secrets } from "../../store/secrets.ts";
import {
  putSession,
  putSubmittedForm,
  readSession,
  removeSession,
  type SessionHolder,
  type StoredSession,
  touchSession,
} from "../store.ts";

/** A signed-in visitor. */
export interface ConsoleSession {
  /** SHA-256 of the cookie, in hex: the key of the session's row. */
  hash: string;
  by: AuditActor;
  /** The only project that it may access; null for all. */
  projectId: string | null;
  /** Whether its key was entered within the last minutes. */
  isConfirmed: boolean;
  /** Encrypts for this browser only: with its cookie, which the store does not contain. */
  sealer(): Promise<Secrets>;
}

/** The sessions of the console. */
export interface ConsoleSessions {
  /**
   * Signs in with a project's key that has the scope `owner`, or with `ADMIN_KEY`; returns the
   * cookie. The browser's earlier session ends. Throws 401, and 403 for a key without the scope.
   */
  start(
    request: Request,
    key: string,
    address: string | null,
  ): Promise<{ cookie: string; projectId: string | null }>;
  /** Returns the request's session: null when it has ended, or the key it was opened with has. */
  of(request: Request): Promise<ConsoleSession | null>;
  /**
   * Confirms a session with the key that it was opened with. Returns whether it is the right one.
   */
  confirm(request: Request, session: ConsoleSession, key: string): Promise<boolean>;
  /** Ends a session at once, in every process. */
  end(session: ConsoleSession): Promise<void>;
  /** The cookie that clears the session. */
  readonly forgotten: string;
  /** Marks this form of the session as sent; returns whether it was the first time. */
  claim(session: ConsoleSession, formId: string): Promise<boolean>;
}

const lifetimeMs = 12 * 60 * 60 * 1000;
/** How long a session may be unused, and how often its use is recorded. */
const idleMs = 60 * 60 * 1000;
const touchedEveryMs = 1_000;
/** How long the entered key counts for actions that ask for it again. */
const confirmedMs = 10 * 60 * 1000;
const idBytes = 32;

/** Keeps sessions as rows of the store, so that they end on the server. */
export function createSessions(
  { deps, auth, projectCache }: { deps: Deps; auth: Auth; projectCache: ProjectCache },
): ConsoleSessions {
  const { kv, committer, clock, config } = deps;
  const secure = config.baseUrl.startsWith("https:");
  // The prefix keeps other hosts of the same site from setting the cookie; it requires https.
  const name = secure ? "__Host-farebox_console" : "farebox_console";
  const cookie = (value: string, maxAge: number) =>
    `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${
      secure ? "; Secure" : ""
    }`;

  async function holderOf(request: Request, key: string, id: string): Promise<SessionHolder> {
    if (auth.isAdminKey(request, key)) return { kind: "operator", digest: digestOf(id) };
    const { snapshot: { project }, key: apiKey } = await auth.opens(request, key);
    if (!apiKey.scopes.includes("owner")) {
      throw new ApiError(403, {
        message: "This key lacks the scope 'owner'. Sign in with the project's owner key.",
        code: "insufficient_scope",
      });
    }
    const held = { projectId: project.id, actor: byApiKey(apiKey, "console").actor };
    if (config.dev && key === devApiKey) return { kind: "dev", ...held };
    return { kind: "key", keyHash: hashKey(key), ...held };
  }

  /** The key cannot be derived from it by someone who has the store but not the cookie. */
  function digestOf(id: string): string {
    return createHmac("sha256", id).update(config.adminKey?.reveal() ?? "").digest("hex");
  }

  async function stillHolds(request: Request, holder: SessionHolder, id: string): Promise<boolean> {
    if (holder.kind === "operator") {
      return auth.mayOperate(request) && new Secret(digestOf(id)).is(holder.digest);
    }
    if (holder.kind === "dev") {
      return config.dev && await doesOpen(auth, request, devApiKey);
    }
    const access = await projectCache.access(holder.keyHash);
    return access !== null && access.key.revokedAt === null &&
      access.key.scopes.includes("owner") && !hasExpired(access.key, clock);
  }

  function sealerOf(id: string): Promise<Secrets> {
    const key = id.replaceAll("-", "+").replaceAll("_", "/");
    return createSecrets([new Secret(key)], deps.randomBytes);
  }

  async function of(request: Request): Promise<ConsoleSession | null> {
    const id = cookieValue(request, name);
    if (id === null) return null;
    const hash = hashOf(id);
    const stored = await readSession(kv, hash);
    const now = clock.now();
    if (!stored || endOf(stored.session) <= now) return null;
    const { holder, confirmedAt } = stored.session;
    if (!await stillHolds(request, holder, id)) return null;
    await touch(hash, stored);
    const projectId = holder.kind === "operator" ? null : holder.projectId;
    const isConfirmed = isGoingOn(confirmedAt, confirmedMs, now);
    return { hash, by: byOf(holder), projectId, isConfirmed, sealer: () => sealerOf(id) };
  }

  /** Records that a session is in use. */
  async function touch(
    hash: string,
    { session, version }: NonNullable<Awaited<ReturnType<typeof readSession>>>,
  ): Promise<void> {
    const now = clock.now();
    if (now - session.usedAt < touchedEveryMs) return;
    const write = emptyWrite();
    touchSession(write, { hash, version, session: { ...session, usedAt: now } });
    // Where another request was faster, it has recorded the same.
    await committer.commit(write);
  }

  async function isKeyOf(request: Request, holder: SessionHolder, key: string): Promise<boolean> {
    if (holder.kind === "operator") return auth.isAdminKey(request, key);
    if (holder.kind === "key" && hashKey(key) !== holder.keyHash) return false;
    if (holder.kind === "dev" && key !== devApiKey) return false;
    return await doesOpen(auth, request, key);
  }

  return {
    of,
    forgotten: cookie("", 0),
    async start(request, key, address) {
      const id = toBase64Url(deps.randomBytes(idBytes));
      const holder = await holderOf(request, key, id);
      const before = await of(request);
      const projectId = holder.kind === "operator" ? null : holder.projectId;
      const write = emptyWrite();
      const now = clock.now();
      const times = { endsAt: now + lifetimeMs, usedAt: now, confirmedAt: now };
      putSession(write, hashOf(id), { holder, ...times });
      if (before) removeSession(write, before.hash);
      const by = fromAddress(byOf(holder), address);
      const auditAction = {
        by,
        action: "console.signed_in" as const,
        target: projectId ?? "all",
      };
      write.sets.push(auditRow(deps, projectId, auditAction));
      await committer.commit(write);
      return { cookie: cookie(id, lifetimeMs / 1000), projectId };
    },
    async confirm(request, { hash }, key) {
      const stored = await readSession(kv, hash);
      if (!stored || !await isKeyOf(request, stored.session.holder, key)) return false;
      const write = emptyWrite();
      const session = { ...stored.session, confirmedAt: clock.now() };
      touchSession(write, { ...stored, hash, session });
      return (await committer.commit(write)) !== null;
    },
    async end({ hash }) {
      const write = emptyWrite();
      removeSession(write, hash);
      await committer.commit(write);
    },
    async claim({ hash }, formId) {
      const write = emptyWrite();
      putSubmittedForm(write, { hash, formId });
      return (await committer.commit(write)) !== null;
    },
  };
}

/** When a session ends, unless it is used before. */
function endOf({ endsAt, usedAt }: StoredSession): number {
  return Math.min(endsAt, usedAt + idleMs);
}

function byOf(holder: SessionHolder): AuditActor {
  return holder.kind === "operator"
    ? byOperator("console")
    : { actor: holder.actor, via: "console" };
}

function hashOf(id: string): string {
  return createHash("sha256").update(id).digest("hex");
}

async function doesOpen(auth: Auth, request: Request, apiKey: string): Promise<boolean> {
  try {
    await auth.opens(request, apiKey);
    return true;
  } catch {
    return false;
  }
}
