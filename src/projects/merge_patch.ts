import { fromBytes, isObject, type Json, type JsonObject, toBytes } from "../base/json.ts";
import { parseWith, unknownParameter } from "../base/request.ts";
import type { ProjectChanges } from "./admin.ts";
import { pricingSchema } from "./price_schema.ts";
import { type UpstreamSettings, urlOf } from "./upstream_schema.ts";
import { type Project, settingNames, type UpdateProject, updateProjectSchema } from "./schema.ts";

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
 * The changes that a merge patch makes to a project's settings. Throws 400 for an unknown setting,
 * and for what is invalid once it is merged.
 */
export function changesByPatch(project: Project, patch: JsonObject): ProjectChanges {
  const unknown = Object.keys(patch).find((name) => !settingNames.has(name));
  if (unknown !== undefined) throw unknownParameter([unknown]);
  const before = settingsOf(project);
  const merged = Object.entries(patch).map(([name, value]) => {
    // A setting cannot be removed as a whole: null is a value of its own, or refused.
    return [name, isObject(value) ? mergePatch(before[name], value) : value];
  });
  const { pricing, ...fields } = Object.fromEntries(merged);
  const changes = {
    ...parseWith(updateProjectSchema, fields),
    ...(pricing === undefined ? {} : { pricing: pricesOf(pricing, patch.pricing) }),
  };
  const { upstream, upstreams = {} } = project;
  const patches = isObject(patch.upstreams) ? patch.upstreams : {};
  const keepsKeysOf = Object.entries(changes.upstreams ?? {}).filter(([name, after]) =>
    keepsKey(upstreams[name], patches[name] ?? {}, after)
  );
  return {
    ...changes,
    keepsUpstreamKey: keepsKey(upstream, patch.upstream, changes.upstream),
    keepsKeysOf: keepsKeysOf.map(([name]) => name),
  };
}

/** The prices that a patch names, from all of them merged: removed ones have their default. */
function pricesOf(merged: Json | undefined, patch: Json | undefined): UpdateProject["pricing"] {
  const all = parseWith(pricingSchema, merged, ["pricing"]);
  const named = Object.entries(all).filter(([name]) => isObject(patch) && name in patch);
  return Object.fromEntries(named);
}

/** A project's settings as they are sent; secrets are never among them. */
function settingsOf(project: Project): JsonObject {
  const settings = fromBytes<JsonObject>(toBytes(project));
  const { upstream, upstreams = {} } = settings;
  const named = isObject(upstreams) ? Object.values(upstreams) : [];
  for (const each of [upstream, ...named]) if (isObject(each)) delete each.apiKey;
  delete settings.stripe;
  return settings;
}

/** The key of an upstream is only ever sent to the host that it was given for. */
function keepsKey(
  before: UpstreamSettings | null | undefined,
  patch: Json | undefined,
  after: UpdateProject["upstream"],
): boolean {
  if (!before?.apiKey || !after || !isObject(patch) || "apiKey" in patch) return false;
  return new URL(urlOf(before)).origin === new URL(urlOf(after)).origin;
}
