import { createHash } from "node:crypto";
import { ApiError } from "../base/errors.ts";
import { canonicalJson } from "../base/json.ts";
import { parseWith, requireNoProto } from "../base/request.ts";
import { type Project, type UpdateProject, updateProjectSchema } from "../projects/schema.ts";
import type { ProjectVisit } from "./guard.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

/** The part of a project's settings that one form edits. */
export type SettingsPart = (project: Project) => unknown;

/** Returns a fingerprint of a part of the settings, which the form sends along. */
export function fingerprintOf(part: SettingsPart, project: Project): string {
  return createHash("sha256").update(canonicalJson(part(project))).digest("base64url");
}

/** Returns the fingerprint for a form that is shown again with an error. */
export function fingerprintAfter(form: URLSearchParams, error: ApiError): string {
  return error instanceof ChangedMeanwhile ? error.seen : form.get("seen") ?? "";
}

/**
 * Saves a settings form, and redirects back to it. Throws 400 for invalid values, and when the
 * settings have changed since the form was opened: another person's change must not be overwritten
 * unseen.
 */
export async function saveSettings(
  { admin }: ConsoleDeps,
  { project, session, here, go }: ProjectVisit,
  { section, part, form, changes }: {
    section: string;
    part: SettingsPart;
    form: URLSearchParams;
    /** Returns the change that the form makes, as `PATCH` would receive it. */
    changes(project: Project): Record<string, unknown>;
  },
): Promise<Response> {
  const isAsSeen = (current: Project) => form.get("seen") === fingerprintOf(part, current);
  const wanted = (current: Project) => {
    // Unchanged values are not validated: 0.9.0 accepted a few that are invalid now. Version 1.1
    // may drop it.
    const given = moved(current, changes(current));
    requireNoProto(given);
    const moves = parseWith(updateProjectSchema, given);
    return changesOf(current, moves);
  };
  if (isEmpty(wanted(project))) {
    // After a double click, the first one saved it.
    return go(here(section), isAsSeen(project) ? "unchanged" : "saved");
  }
  await admin.update(project.id, (current) => {
    const wants = wanted(current);
    if (isAsSeen(current) || isEmpty(wants)) return wants;
    throw new ChangedMeanwhile(fingerprintOf(part, current));
  }, session.by);
  return go(here(section), "saved");
}

/** Someone else saved the same settings since the form was opened. */
class ChangedMeanwhile extends ApiError {
  readonly seen: string;

  constructor(seen: string) {
    super(400, {
      message: "The project has changed since you opened this page. Your input is still " +
        "here: compare it with the current settings, and save again.",
      param: "seen",
    });
    this.seen = seen;
  }
}

/** Returns only what differs from the current settings. */
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
