import { type Json, type JsonObject, parseJson } from "../base/json.ts";
import { changedFields } from "./events.ts";
import type { Project, UpdateProject } from "./schema.ts";

/** The project with what was given in place of what it had; its secrets are sealed elsewhere. */
export function applyChanges(project: Project, changes: UpdateProject): Project {
  const { upstream: _, stripe: __, pricing = {}, ...settings } = changes;
  return Object.assign({}, project, given(settings), {
    pricing: Object.assign({}, project.pricing, given(pricing)),
  });
}

/** The fields that a change gives. */
function given(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Longer values are only said to have changed, in characters of JSON. */
const shownCharsMax = 256;
const fieldsShownMax = 8;

/** What an update changed, for the audit trail: from what to what, of secrets only that they did. */
export function describeChanges(
  before: Project,
  after: Project,
  changes: UpdateProject,
): JsonObject {
  const fields = changedFields(changes);
  const moves = fields.slice(0, fieldsShownMax).flatMap((field) => {
    if (field === "stripe" || field === "upstream") return [];
    const [from, to] = [valueAt(before, field), valueAt(after, field)];
    const [fromText, toText] = [JSON.stringify(from), JSON.stringify(to)];
    if (fromText === toText || fromText.length + toText.length > shownCharsMax) return [];
    return [[field, { from, to }] as const];
  });
  return { fields, ...Object.fromEntries(moves) };
}

/** The value of a field, or of one below `pricing`: as it is stored, which is JSON. */
function valueAt(project: Project, field: string): Json {
  let at: unknown = project;
  for (const part of field.split(".")) at = Object(at)[part];
  return parseJson(JSON.stringify(at));
}
