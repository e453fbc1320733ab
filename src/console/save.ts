import { createHash } from "node:crypto";
import { ApiError } from "../base/errors.ts";
import { canonicalJson } from "../base/json.ts";
import { parseWith } from "../base/request.ts";
import { type Project, type UpdateProject, updateProjectSchema } from "../projects/schema.ts";
import type { ProjectVisit } from "./guard.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

/** What of a project's settings one form gives as a whole. */
export type SettingsPart = (project: Project) => unknown;

/** A part of the settings as it is, in short: goes along with the form that shows it. */
export function fingerprintOf(part: SettingsPart, project: Project): string {
  return createHash("sha256").update(canonicalJson(part(project))).digest("base64url");
}

/** What the form of a fault goes on with: what it was opened on, or what it is told to look at. */
export function fingerprintAfter(form: URLSearchParams, error: ApiError): string {
  return error instanceof ChangedMeanwhile ? error.seen : form.get("seen") ?? "";
}

/**
 * Saves what a form of the project's settings changed, and leads back to it. Throws 400 for
 * what the schema refuses, and when its part has changed since the form was opened: what someone
 * else did must not be undone unseen.
 */
export async function saveSettings(
  { admin }: ConsoleDeps,
  { project, session, here, go }: ProjectVisit,
  { section, part, form, changes }: {
    section: string;
    part: SettingsPart;
    form: URLSearchParams;
    /** What the form makes of a project, as `PATCH` would be given it. */
    changes(project: Project): Record<string, unknown>;
  },
): Promise<Response> {
  const isAsSeen = (current: Project) => form.get("seen") === fingerprintOf(part, current);
  const wanted = (current: Project) => {
    // What is as it was is not judged: older versions may have taken what is refused now.
    const moves = parseWith(updateProjectSchema, moved(current, changes(current)));
    return changesOf(current, moves);
  };
  if (isEmpty(wanted(project))) {
    // Where it was pressed twice, the first one did it.
    return go(here(section), isAsSeen(project) ? "unchanged" : "saved");
  }
  await admin.update(project.id, (current) => {
    const wants = wanted(current);
    if (isAsSeen(current) || isEmpty(wants)) return wants;
    throw new ChangedMeanwhile(fingerprintOf(part, current));
  }, session.by);
  return go(here(section), "saved");
}

/** Somebody else saved the same part since the form was opened. */
class ChangedMeanwhile extends ApiError {
  readonly seen: string;

  constructor(seen: string) {
    super(400, {
      message: "The project has changed since you opened this page. What you filled in is still " +
        "here: compare it with how things stand, and save again.",
      param: "seen",
    });
    this.seen = seen;
  }
}

/** Of what a form gives, only what is not so already. */
function changesOf(project: Project, { pricing, ...fields }: UpdateProject): UpdateProject {
  const prices = moved(project.pricing, pricing ?? {});
  const own = isEmpty(prices) ? {} : { pricing: prices };
  return parseWith(updateProjectSchema, { ...moved(project, fields), ...own });
}

function moved(before: object, after: object): Record<string, unknown> {
  const fields = Object.entries(after).filter(([name, value]) =>
    canonicalJson(value) !== canonicalJson(Reflect.get(before, name))
  );
  return Object.fromEntries(fields);
}

function isEmpty(changes: object): boolean {
  return Object.keys(changes).length === 0;
}
