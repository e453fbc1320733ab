import { badRequest } from "../base/errors.ts";
import { fromBytes, type JsonObject, toBytes, utf8Length } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { auditKey, auditPrefix, instanceTrail } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import type { ApiKey } from "./schema.ts";

/** Who changes something, and through which door. */
export interface By {
  actor: {
    type: "key" | "operator";
    /** The API key's id; `operator` for whoever has `ADMIN_KEY`. */
    id: string;
    /** The last four characters of the key. */
    suffix?: string;
  };
  via: "console" | "api";
}

/** What was done, to be written down with it. */
export interface Deed {
  by: By;
  /** What happened, as `key.revoked`. */
  action: string;
  /** The id of what it happened to, or the user. */
  target: string;
  /** What else to know of it: never a secret. What is too large is left out. */
  detail?: JsonObject;
}

/** One row of an audit trail. */
export interface AuditRow extends By {
  id: string;
  /** ISO 8601. */
  at: string;
  action: string;
  target: string;
  detail: JsonObject;
}

/** Whoever has `ADMIN_KEY`. */
export function byOperator(via: By["via"]): By {
  return { actor: { type: "operator", id: "operator" }, via };
}

/** Whoever has one of the project's keys. */
export function byApiKey({ id, suffix }: Pick<ApiKey, "id" | "suffix">, via: By["via"]): By {
  return { actor: { type: "key", id, suffix }, via };
}

const detailBytesMax = 4 * 1024;

/**
 * The row that says what was done, for the very write that does it: there is no action without its
 * row, and no row without its action. A project's trail, or with null the instance's own.
 */
export function auditRow(
  { id, clock }: Pick<Deps, "id" | "clock">,
  projectId: string | null,
  { by, action, target, detail = {} }: Deed,
): { key: Key; value: Uint8Array<ArrayBuffer> } {
  const fits = utf8Length(JSON.stringify(detail)) <= detailBytesMax;
  const row: AuditRow = {
    id: id("aud"),
    at: new Date(clock.now()).toISOString(),
    ...by,
    action,
    target,
    detail: fits ? detail : { omitted: "more than 4 KiB" },
  };
  return { key: auditKey(projectId ?? instanceTrail, row.id), value: toBytes(row) };
}

/** The page of a trail after `cursor`, newest first. Throws 400 for a cursor that is none. */
export async function listAudit(
  kv: Kv,
  projectId: string | null,
  { limit, cursor }: { limit: number; cursor: string | undefined },
): Promise<{ actions: AuditRow[]; nextCursor: string | null }> {
  if (cursor !== undefined && !/^aud_[0-9A-HJKMNP-TV-Z]{26}$/.test(cursor)) {
    throw badRequest("cursor", "'cursor' is not valid.");
  }
  const trail = projectId ?? instanceTrail;
  // What a page starts before is the last row of the page that came first.
  const end = cursor === undefined ? {} : { end: auditKey(trail, cursor) };
  const rows = await kv.list({
    prefix: auditPrefix(trail),
    ...end,
    reverse: true,
    limit: limit + 1,
  });
  const actions = rows.slice(0, limit).flatMap(({ value }) =>
    value ? [fromBytes<AuditRow>(value)] : []
  );
  return { actions, nextCursor: rows.length > limit ? actions.at(-1)?.id ?? null : null };
}
