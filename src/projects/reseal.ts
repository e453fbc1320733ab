import type { Deps } from "../deps.ts";
import { ApiError } from "../base/errors.ts";
import type { Key, Kv } from "../store/kv.ts";
import { projectKey } from "../store/keys.ts";
import { type Sealed, type Secrets, secretUnreadable } from "../store/secrets.ts";
import type { ProjectAdmin } from "./admin.ts";
import { type AuditAction, type AuditActor, auditRow } from "./audit.ts";
import type { Project } from "./schema.ts";
import type { UpstreamSettings } from "./upstream_schema.ts";
import { listProjects } from "./store.ts";

/** How many projects each call handles. */
const pageSize = 20;

/** Lists one page of projects, in order of creation, and where the next one starts. */
export async function listProjectsToReseal(
  kv: Kv,
  cursor: string | undefined,
): Promise<{ projects: Project[]; nextCursor: string | null }> {
  const projects = await listProjects(kv, pageSize + 1, cursor);
  return { projects: projects.slice(0, pageSize), nextCursor: projects[pageSize]?.id ?? null };
}

/** The progress of a walk over secrets. */
export interface Resealed {
  /** How many secrets were encrypted with another key. */
  count: number;
  /** Where secrets are that no key decrypts. They stay as they are. */
  unreadable: Set<string>;
}

/** Encrypts a secret with the first key, or notes that no key decrypts it. */
export async function resealOne<T extends Sealed | null | undefined>(
  secrets: Secrets,
  sealed: T,
  { place, done }: { place: Key; done: Resealed },
): Promise<T | Sealed> {
  if (!sealed) return sealed;
  try {
    const made = await secrets.reseal(sealed, place);
    if (made) done.count++;
    return made ?? sealed;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== secretUnreadable) throw error;
    done.unreadable.add(String(place.at(-1)));
    return sealed;
  }
}

/** The services that resealing depends on. */
export interface ResealDeps {
  deps: Pick<Deps, "kv" | "committer" | "id" | "clock">;
  admin: ProjectAdmin;
  secrets: Secrets;
}

/** Returns the audit action of encrypting the secrets of a record with the newest key. */
export function resealed(by: AuditActor, target: string, count: number): AuditAction {
  return { by, action: "secrets.resealed", target, detail: { count } };
}

/** Encrypts a project's secrets with the first key of `SECRETS_KEY`. */
export async function resealProject(
  { deps, admin, secrets }: ResealDeps,
  { id, upstream, upstreams, stripe }: Project,
  by: AuditActor,
): Promise<Resealed> {
  const hasKey = [upstream, ...Object.values(upstreams)].some((each) => each?.apiKey);
  const done: Resealed = { count: 0, unreadable: new Set() };
  if (!hasKey && !stripe) return done;
  const place = projectKey(id);
  const fresh = <T extends Sealed | null>(sealed: T) => resealOne(secrets, sealed, { place, done });
  await admin.change(id, async ({ project: before }, write) => {
    done.count = 0;
    const { upstream, upstreams, stripe } = before;
    const named: [string, UpstreamSettings][] = [];
    for (const [name, each] of Object.entries(upstreams)) {
      named.push([name, { ...each, apiKey: await fresh(each.apiKey) }]);
    }
    const project = {
      ...before,
      upstream: upstream && { ...upstream, apiKey: await fresh(upstream.apiKey) },
      upstreams: Object.fromEntries(named),
      stripe: stripe && {
        secretKey: await fresh(stripe.secretKey),
        webhookSecret: await fresh(stripe.webhookSecret),
      },
    };
    const { count } = done;
    if (count > 0) write.sets.push(auditRow(deps, id, resealed(by, id, count)));
    return { project, events: [] };
  });
  return done;
}
