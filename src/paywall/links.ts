import { Bursts, ownBurst, projectBurst } from "../base/bursts.ts";
import type { Deps } from "../deps.ts";
import { readAuthorization } from "../ledger/authorization.ts";
import type { Project } from "../projects/schema.ts";
import { keyText } from "../store/batch.ts";
import type { Secrets } from "../store/secrets.ts";
import { createSignedTokens } from "../store/signed_tokens.ts";
import { createLinkCodes, isLinkCode } from "./link_codes.ts";
import type { AuthorizationLink, LinkSubject } from "./link_subject.ts";

/** Creates and reads the links in paywall messages. */
export interface Links {
  /**
   * Returns where this user tops up: the project's own URL with its placeholders filled in and
   * escaped, or the hosted page. `amount` is a decimal string that the page may suggest.
   */
  topUpUrl(project: Project, user: string, amount?: string): Promise<string>;
  /** Reads a hosted page's token; null when it is forged or has expired. */
  readTopUpLink(token: string): Promise<LinkSubject | null>;
  /**
   * Creates the link where a person authorizes the project to charge their wallet for this user. It
   * is not stored where the project, or the user, creates very many: then nobody is told of it.
   */
  createAuthorizationLink(
    project: Project,
    user: string,
  ): Promise<{ url: string; requestId: string; isStored: boolean }>;
  /** Reads an authorization page's token; null when it is forged or has expired. */
  readAuthorizationLink(token: string): Promise<AuthorizationLink | null>;
}

/** Fills `{user}`, `{project}` and `{amount}` into a URL template, escaped. */
export function fillTemplate(
  template: string,
  values: { user: string; project: string; amount: string },
): string {
  const filled = new Map(Object.entries(values));
  return template.replace(
    /\{(user|project|amount)\}/g,
    (_whole, name: string) => encodeURIComponent(filled.get(name) ?? ""),
  );
}

/** Long enough to return to an old chat message, short enough that a leaked link expires. */
const lifetimeMs = 7 * 24 * 60 * 60 * 1000;

type LinkDeps = Pick<Deps, "config" | "kv" | "committer" | "clock" | "id" | "randomBytes">;

/**
 * Creates links. Their codes are random, and stored with what they are for. Where a project creates
 * many at once, further links carry it themselves, signed with HMAC-SHA-256: refused calls with
 * ever new user names must not fill the store.
 */
export async function createLinks(
  { deps, secrets }: { deps: LinkDeps; secrets: Secrets },
): Promise<Links> {
  const { config: { baseUrl }, clock: { now }, kv, id } = deps;
  const codes = createLinkCodes(deps, lifetimeMs);
  const projects = new Bursts(deps.clock, projectBurst);
  const users = new Bursts(deps.clock, ownBurst);
  const mayStore = (projectId: string) => projects.isFirst(projectId);
  const topUps = await createSignedTokens(secrets, "top-up links");
  const approvals = await createSignedTokens(secrets, "authorization links");
  return {
    async topUpUrl(project, user, amount = "") {
      if (project.topUpUrl !== null) {
        return fillTemplate(project.topUpUrl, { user, project: project.id, amount });
      }
      const subject = { projectId: project.id, user };
      const code = await codes.forTopUp(subject, () => mayStore(project.id));
      if (code !== null) return `${baseUrl}/t/${code}`;
      const token = await topUps.make([project.id, user, now() + lifetimeMs]);
      return `${baseUrl}/topup/${token}`;
    },
    async readTopUpLink(token) {
      if (isLinkCode(token)) {
        const row = await codes.read(token);
        return row?.kind === "topup" ? { projectId: row.projectId, user: row.user } : null;
      }
      const value = await topUps.read(token);
      if (!Array.isArray(value)) return null;
      const [projectId, user, expiresAt] = value;
      return expiresAt > now() ? { projectId, user } : null;
    },
    async createAuthorizationLink({ id: projectId }, user) {
      // A link is good for a decision after the last one, also where a wrong clock dated that.
      const last = await readAuthorization(kv, projectId, user);
      const issuedAt = Math.max(now(), (last?.authorization.decidedAt ?? 0) + 1);
      const requestId = id("areq");
      const link = { projectId, user, requestId, issuedAt };
      const isStored = users.isFirst(keyText([projectId, user])) && mayStore(projectId);
      const path = isStored
        ? `/a/${await codes.forAuthorization(link)}`
        : `/authorize/${await approvals.make([projectId, user, requestId, issuedAt])}`;
      return { url: `${baseUrl}${path}`, requestId, isStored };
    },
    async readAuthorizationLink(token) {
      if (isLinkCode(token)) {
        const row = await codes.read(token);
        if (row?.kind !== "authorize") return null;
        const { projectId, user, requestId, issuedAt } = row;
        return { projectId, user, requestId, issuedAt };
      }
      const value = await approvals.read(token);
      if (!Array.isArray(value)) return null;
      const [projectId, user, requestId, issuedAt] = value;
      if (issuedAt + lifetimeMs <= now()) return null;
      return { projectId, user, requestId, issuedAt };
    },
  };
}
