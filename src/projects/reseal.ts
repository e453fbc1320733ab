import type { Kv } from "../store/kv.ts";
import { projectKey } from "../store/keys.ts";
import type { Sealed, Secrets } from "../store/secrets.ts";
import type { ProjectAdmin } from "./admin.ts";
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

/** Puts a project's secrets under the first key of `SECRETS_KEY`; how many were not. */
export async function resealProject(
  { admin, secrets }: { admin: ProjectAdmin; secrets: Secrets },
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
  await admin.change(id, async ({ project }) => {
    count = 0;
    const { upstream, stripe } = project;
    return {
      project: {
        ...project,
        upstream: upstream && { ...upstream, apiKey: await fresh(upstream.apiKey) },
        stripe: stripe && {
          secretKey: await fresh(stripe.secretKey),
          webhookSecret: await fresh(stripe.webhookSecret),
        },
      },
      events: [],
    };
  });
  return count;
}
