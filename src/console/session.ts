import { toBase64Url } from "../base/base64.ts";
import { createHash, createHmac } from "node:crypto";
import { ApiError } from "../base/errors.ts";
import { cookieValue } from "../base/request.ts";
import { Secret } from "../base/secret.ts";
import type { Deps } from "../deps.ts";
import { type AuditActor, auditRow, byApiKey, byOperator } from "../projects/audit.ts";
import { type Auth, devApiKey, hashKey } from "../projects/auth.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { scopes } from "../projects/schema.ts";
import { emptyWrite } from "../store/kv.ts";
import { createSecrets, type Secrets } from "../store/secrets.ts";
import {
  listEnded,
  listForms,
  putSession,
  putSubmittedForm,
  readSession,
  removeOtherSessions,
  removeSession,
  type SessionHolder,
} from "./store.ts";

/** Somebody who is signed in. */
export interface ConsoleSession {
  /** SHA-256 of the cookie, in hex: what the session is stored under. */
  hash: string;
  by: AuditActor;
  /** The only project that it opens; null opens all. */
  projectId: string | null;
  /** Seals for this browser alone: by its cookie, which nobody has who has the store. */
  sealer(): Promise<Secrets>;
}

/** Who is signed in to the console. */
export interface ConsoleSessions {
  /**
   * Signs in with a project's key that has all scopes, or with `ADMIN_KEY`; gives the cookie. The
   * session that the browser had before ends. Throws 401, 403 for a key with less than all scopes.
   */
  start(request: Request, key: string): Promise<{ cookie: string; projectId: string | null }>;
  /** Whose session the request carries: null when it has ended or what it was opened with has. */
  of(request: Request): Promise<ConsoleSession | null>;
  /** Ends it at once, everywhere. */
  end(session: ConsoleSession): Promise<void>;
  /** The cookie that forgets. */
  readonly forgotten: string;
  /** Whether this form of the session is sent for the first time; from then on it was sent. */
  claim(session: ConsoleSession, formId: string): Promise<boolean>;
  /** Removes what has ended; a bounded part at each call. */
  sweep(): Promise<void>;
}

const lifetimeMs = 12 * 60 * 60 * 1000;
const idBytes = 32;
const sweptAtOnce = 100;

/**
 * Sessions as rows of the store, so that they end on the server and not in a browser's goodwill.
 */
export function createSessions(
  { deps, auth, projectCache }: { deps: Deps; auth: Auth; projectCache: ProjectCache },
): ConsoleSessions {
  const { kv, committer, clock, config } = deps;
  const secure = config.baseUrl.startsWith("https:");
  // The prefix keeps other hosts of the same site from setting it; it asks for https.
  const name = secure ? "__Host-farebox_console" : "farebox_console";
  const cookie = (value: string, maxAge: number) =>
    `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${
      secure ? "; Secure" : ""
    }`;

  async function holderOf(request: Request, key: string, id: string): Promise<SessionHolder> {
    if (auth.isAdminKey(key)) return { kind: "operator", digest: digestOf(id) };
    const { snapshot: { project }, key: apiKey } = await auth.opens(request, key);
    if (!scopes.every((scope) => apiKey.scopes.includes(scope))) {
      throw new ApiError(403, {
        message: "This key lacks some scopes. Sign in with a key that has all of them.",
        code: "insufficient_scope",
      });
    }
    const held = { projectId: project.id, actor: byApiKey(apiKey, "console").actor };
    if (config.dev && key === devApiKey) return { kind: "dev", ...held };
    return { kind: "key", keyHash: hashKey(key), ...held };
  }

  /** Nobody can go back from it to the key, who has the store but not the cookie. */
  function digestOf(id: string): string {
    return createHmac("sha256", id).update(config.adminKey?.reveal() ?? "").digest("hex");
  }

  async function stillHolds(request: Request, holder: SessionHolder, id: string): Promise<boolean> {
    if (holder.kind === "operator") {
      return config.adminKey !== null && new Secret(digestOf(id)).is(holder.digest);
    }
    if (holder.kind === "dev") {
      return config.dev && await auth.opens(request, devApiKey).then(() => true, () => false);
    }
    const access = await projectCache.access(holder.keyHash);
    return access !== null && access.key.revokedAt === null;
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
    if (!stored || stored.endsAt <= clock.now()) return null;
    const { holder } = stored;
    if (!await stillHolds(request, holder, id)) return null;
    const projectId = holder.kind === "operator" ? null : holder.projectId;
    return { hash, by: byOf(holder), projectId, sealer: () => sealerOf(id) };
  }

  return {
    of,
    forgotten: cookie("", 0),
    async start(request, key) {
      const id = toBase64Url(deps.randomBytes(idBytes));
      const holder = await holderOf(request, key, id);
      const before = await of(request);
      const projectId = holder.kind === "operator" ? null : holder.projectId;
      const write = emptyWrite();
      putSession(write, hashOf(id), { holder, endsAt: clock.now() + lifetimeMs });
      if (before) removeSession(write, before.hash);
      const deed = { by: byOf(holder), action: "console.signed_in", target: projectId ?? "all" };
      write.sets.push(auditRow(deps, projectId, deed));
      await committer.commit(write);
      return { cookie: cookie(id, lifetimeMs / 1000), projectId };
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
    async sweep() {
      for (
        const { hash, endsAt } of await listEnded(kv, { now: clock.now(), limit: sweptAtOnce })
      ) {
        const write = emptyWrite();
        const forms = await listForms(kv, hash, sweptAtOnce);
        // With more, its end stays, and is found again.
        if (forms.length === sweptAtOnce) write.deletes.push(...forms);
        else removeOtherSessions(write, { hash, endsAt, forms });
        await committer.commit(write);
      }
    },
  };
}

function byOf(holder: SessionHolder): AuditActor {
  return holder.kind === "operator"
    ? byOperator("console")
    : { actor: holder.actor, via: "console" };
}

function hashOf(id: string): string {
  return createHash("sha256").update(id).digest("hex");
}
