import type { Deps } from "../deps.ts";
import type { Kv } from "../store/kv.ts";
import { projectKey } from "../store/keys.ts";
import type { Sealed, Secrets } from "../store/secrets.ts";
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

/** What resealing depends on. */
export interface ResealDeps {
  deps: Pick<Deps, "kv" | "committer" | "id" | "clock">;
  admin: ProjectAdmin;
  secrets: Secrets;
}

/** Returns the audit action of encrypting the secrets of a record with the newest key. */
export function resealed(by: AuditActor, target: string, count: number): AuditAction {
  return { by, action: "secrets.resealed", target, detail: { count } };
}

/**
 * Encrypts a project's secrets with the first key of `SECRETS_KEY`. Returns how many were not
 * before.
 */
export async function resealProject(
  { deps, admin, secrets }: ResealDeps,
  { id, upstream, upstreams = {}, stripe }: Project,
  by: AuditActor,
): Promise<number> {
  const hasKey = [upstream, ...Object.values(upstreams)].some((each) => each?.apiKey);
  if (!hasKey && !stripe) return 0;
  let count = 0;
  const place = projectKey(id);
  async function fresh<T extends Sealed | null>(sealed: T): Promise<T | Sealed> {
    const made = sealed && (await secrets.reseal(sealed, place));
    if (made) count++;
    return made ?? sealed;
  }
  await admin.change(id, async ({ project: before }, write) => {
    count = 0;
    const { upstream, upstreams = {}, stripe } = before;
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
    if (count > 0) write.sets.push(auditRow(deps, id, resealed(by, id, count)));
    return { project, events: [] };
  });
  return count;
}
