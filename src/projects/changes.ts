import { type Json, type JsonObject, parseJson } from "../base/json.ts";
import { changedFields } from "./events.ts";
import type { Project, UpdateProject } from "./schema.ts";

/** The project with what was given in place of what it had; its secrets are sealed elsewhere. */
export function applyChanges(project: Project, changes: UpdateProject): Project {
  const given = <T>(value: T | undefined, kept: T): T => (value === undefined ? kept : value);
  const { pricing } = changes;
  return {
    ...project,
    name: given(changes.name, project.name),
    ownerUserId: given(changes.ownerUserId, project.ownerUserId),
    topUpUrl: given(changes.topUpUrl, project.topUpUrl),
    userSource: given(changes.userSource, project.userSource),
    maxOutputTokens: given(changes.maxOutputTokens, project.maxOutputTokens),
    allowedFields: given(changes.allowedFields, project.allowedFields),
    billingEvents: given(changes.billingEvents, project.billingEvents),
    messages: given(changes.messages, project.messages),
    topUp: given(changes.topUp, project.topUp),
    trialCredits: given(changes.trialCredits, project.trialCredits),
    lowBalance: given(changes.lowBalance, project.lowBalance),
    limits: given(changes.limits, project.limits),
    pricing: {
      catalogue: given(pricing?.catalogue, project.pricing.catalogue),
      markupPercent: given(pricing?.markupPercent, project.pricing.markupPercent),
      requestFee: given(pricing?.requestFee, project.pricing.requestFee),
      models: given(pricing?.models, project.pricing.models),
    },
  };
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
