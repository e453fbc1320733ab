import { badRequest } from "../base/errors.ts";
import { canonicalJson } from "../base/json.ts";
import { parseWith } from "../base/request.ts";
import { type Project, type UpdateProject, updateProjectSchema } from "../projects/schema.ts";
import type { ProjectVisit } from "./door.tsx";
import type { ConsoleRooms } from "./rooms.ts";

/**
 * Saves what a form of the project's settings changed, and leads back to it. Throws 400 for
 * what the schema refuses, and when the project has changed since the form was opened: what someone else did must not be undone unseen.
 */
export async function save(
  { admin }: ConsoleRooms,
  { project, session, here, go }: ProjectVisit,
  { section, seen, changes }: {
    section: string;
    seen: string | null;
    changes: Record<string, unknown>;
  },
): Promise<Response> {
  if (seen !== project.updatedAt) {
    throw badRequest(
      "seen",
      "The project has changed since you opened this page. What you filled in is still here: " +
        "compare it with how things stand, and save again.",
    );
  }
  // What is as it was is not judged: older versions may have taken what is refused now.
  const changed = changesOf(project, parseWith(updateProjectSchema, moved(project, changes)));
  if (Object.keys(changed).length === 0) return go(here(section), "unchanged");
  await admin.update(project.id, changed, session.by);
  return go(here(section), "saved");
}

/** Of what a form gives, only what is not so already. */
function changesOf(project: Project, { pricing, ...fields }: UpdateProject): UpdateProject {
  const prices = moved(project.pricing, pricing ?? {});
  const own = Object.keys(prices).length === 0 ? {} : { pricing: prices };
  return parseWith(updateProjectSchema, { ...moved(project, fields), ...own });
}

function moved(before: object, after: object): Record<string, unknown> {
  const fields = Object.entries(after).filter(([name, value]) =>
    canonicalJson(value) !== canonicalJson(Reflect.get(before, name))
  );
  return Object.fromEntries(fields);
}
