import type { Deps } from "../deps.ts";
import type { Kv } from "../store/kv.ts";
import { projectKey } from "../store/keys.ts";
import type { Sealed, Secrets } from "../store/secrets.ts";
import type { ProjectAdmin } from "./admin.ts";
import { auditRow, byOperator, type Deed } from "./audit.ts";
import type { Project } from "./schema.ts";
import { listProjects } from "./store.ts";

/** So many projects at each call. */
const pageSize = 20;

/** One page of projects, in order of creation, and where the next one starts. */
export async function pageOfProjects(
  kv: Kv,
  cursor: string | undefined,
): Promise<{ projects: Project[]; nextCursor: string | null }> {
  const projects = await listProjects(kv, pageSize + 1, cursor);
  return { projects: projects.slice(0, pageSize), nextCursor: projects[pageSize]?.id ?? null };
}

/** What resealing stands on. */
export interface ResealRooms {
  deps: Pick<Deps, "kv" | "committer" | "id" | "clock">;
  admin: ProjectAdmin;
  secrets: Secrets;
}

/** What the audit trail says of a record whose secrets were put under the newest key. */
export function resealed(target: string, count: number): Deed {
  return { by: byOperator("api"), action: "secrets.resealed", target, detail: { count } };
}

/** Puts a project's secrets under the first key of `SECRETS_KEY`; how many were not. */
export async function resealProject(
  { deps, admin, secrets }: ResealRooms,
  { id, upstream, stripe }: Project,
): Promise<number> {
  if (!upstream?.apiKey && !stripe) return 0;
  let count = 0;
  const place = projectKey(id);
  async function fresh<T extends Sealed | null>(sealed: T): Promise<T | Sealed> {
    const made = sealed && (await secrets.reseal(sealed, place));
    if (made) count++;
    return made ?? sealed;
  }
  await admin.change(id, async ({ project: before }, write) => {
    count = 0;
    const { upstream, stripe } = before;
    const project = {
      ...before,
      upstream: upstream && { ...upstream, apiKey: await fresh(upstream.apiKey) },
      stripe: stripe && {
        secretKey: await fresh(stripe.secretKey),
        webhookSecret: await fresh(stripe.webhookSecret),
      },
    };
    if (count > 0) write.sets.push(auditRow(deps, id, resealed(id, count)));
    return { project, events: [] };
  });
  return count;
}
