import type { Deps } from "../deps.ts";
import { projectsPrefix } from "./keys.ts";
import type { Key, Row } from "./kv.ts";

/** How many projects one call looks at. */
const projectsPerCall = 100;

/**
 * Creates rounds over all projects: each call does one part of the work on each of the next
 * projects, and goes on with those that have more until it is late, so that a busy project delays
 * no other. `part` returns whether the project has more. What is left is done by the next calls.
 */
export function createProjectRounds(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  callMs: number,
): (part: (project: Row) => Promise<boolean>) => Promise<void> {
  let start: Key | null = null;
  return async (part) => {
    const from = start ? { start } : {};
    const rows = await kv.list({ prefix: projectsPrefix, ...from, limit: projectsPerCall + 1 });
    start = rows[projectsPerCall]?.key ?? null;
    const deadline = clock.elapsed() + callMs;
    let busy = rows.slice(0, projectsPerCall);
    while (busy.length > 0 && clock.elapsed() < deadline) {
      const withMore: Row[] = [];
      for (const project of busy) if (await part(project)) withMore.push(project);
      busy = withMore;
    }
    start ??= busy[0]?.key ?? null;
  };
}
