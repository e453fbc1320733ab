import { badRequest } from "../base/errors.ts";
import {
  fromBytes,
  isObject,
  type Json,
  type JsonObject,
  ownMember,
  toBytes,
} from "../base/json.ts";
import { parseWith, unknownParameter } from "../base/request.ts";
import { pricingSchema } from "./price_schema.ts";
import type { UpstreamSettings } from "./upstream_schema.ts";
import {
  fixedNames,
  type Project,
  settingNames,
  type UpdateProject,
  updateProjectSchema,
} from "./schema.ts";
import { isSameHost } from "./seal_settings.ts";
import { viewProject } from "./view.ts";

/**
 * A value with a patch applied, by RFC 7396: objects merge at every level, null removes a member,
 * and everything else, lists too, replaces what was there.
 */
export function mergePatch(value: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(value) ? Object.entries(value) : []);
  for (const [name, member] of Object.entries(patch)) {
    if (member === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), member));
  }
  return Object.fromEntries(merged);
}

/**
 * The changes that a merge patch of a project's view makes to its settings. Throws 400 for an
 * unknown setting, for a fixed field with another value, and for what is invalid once it is merged.
 */
export function changesByPatch(project: Project, patch: JsonObject): UpdateProject {
  const view = fromBytes<JsonObject>(toBytes(viewProject(project)));
  const settings = Object.entries(patch).filter(([name, value]) => {
    if (settingNames.has(name)) return true;
    requireFixed(view, name, value);
    return false;
  });
  const merged = settings.map(([name, value]) => {
    // The secrets of two Stripe accounts would not fit together: a change names both.
    const before = name === "stripe" ? {} : view[name];
    // A setting cannot be removed as a whole: null is a value of its own, or refused.
    return [name, isObject(value) ? mergePatch(before, value) : value];
  });
  const { pricing, ...fields } = Object.fromEntries(merged);
  const changes = parseWith(updateProjectSchema, fields);
  dropMovedKeys(project, patch, changes);
  return pricing === undefined
    ? changes
    : { ...changes, pricing: pricesOf(pricing, patch.pricing) };
}

/** Throws 400 for a field that there is not, or that a change cannot give another value. */
function requireFixed(view: JsonObject, name: string, value: Json): void {
  if (!fixedNames.has(name)) throw unknownParameter([name]);
  // Every change moves it.
  if (name === "updatedAt" || value === view[name]) return;
  throw badRequest(name, `'${name}' cannot be changed by an update.`);
}

/** The prices that a patch names, from all of them merged: removed ones have their default. */
function pricesOf(merged: Json | undefined, patch: Json | undefined): UpdateProject["pricing"] {
  const all = parseWith(pricingSchema, merged, ["pricing"]);
  const named = Object.entries(all).filter(([name]) =>
    isObject(patch) && Object.hasOwn(patch, name)
  );
  return Object.fromEntries(named);
}

/**
 * The key of an upstream is only ever sent to the host that it was given for: a patch that moves
 * an upstream without naming its key leaves it without one.
 */
function dropMovedKeys(project: Project, patch: JsonObject, changes: UpdateProject): void {
  const drop = (
    before: UpstreamSettings | null | undefined,
    part: Json | undefined,
    after: UpdateProject["upstream"],
  ) => {
    if (!before || !after || (isObject(part) && Object.hasOwn(part, "apiKey"))) return;
    if (!isSameHost(before, after)) after.apiKey = null;
  };
  drop(project.upstream, patch.upstream, changes.upstream);
  const parts = isObject(patch.upstreams) ? patch.upstreams : {};
  for (const [name, after] of Object.entries(changes.upstreams ?? {})) {
    drop(ownMember(project.upstreams, name), ownMember(parts, name), after);
  }
}
