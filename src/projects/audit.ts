import { z } from "zod";
import { badCursor, badRequest } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import { idOf, nextCursor, pageQuery, time } from "../base/fields.ts";
import { fromBytes, fromBytesExactly, isObject, type JsonObject, toBytes } from "../base/json.ts";
import { utf8Length } from "../base/utf8.ts";
import type { Deps } from "../deps.ts";
import { auditKey, auditPrefix, instanceTrail } from "../store/keys.ts";
import { emptyWrite, type Key, type Kv } from "../store/kv.ts";
import { listByTime, type Listing } from "../store/listing.ts";
import type { ApiKey } from "./schema.ts";

const bySchema = {
  actor: z.object({
    type: z.enum(["key", "operator", "unknown"]),
    id: z.string().meta({
      description: "The API key's id; `operator` for `ADMIN_KEY`; `unknown` for a wrong key.",
    }),
    suffix: z.string().optional().meta({ description: "The last four characters of the key." }),
  }),
  via: z.enum(["console", "api", "command"]),
  address: z.string().optional().meta({
    description: "The client's IP address, where it is known.",
  }),
};
const by = z.object(bySchema);
/** Who makes a change, and by which interface. */
export type AuditActor = z.output<typeof by>;

/** One row of an audit trail. */
const auditRowSchema = z.object({
  id: idOf("aud", "The row's id."),
  at: time,
  ...bySchema,
  action: z.string().meta({ description: "The action, such as `key.revoked`." }),
  target: z.string().meta({ description: "The id of the affected object, or the user." }),
  detail: z.custom<JsonObject>(isObject).meta({
    description: "Further details, never a secret.",
    override: { type: "object" },
  }),
}).meta({ id: "AuditRow" });
/** One row of an audit trail. */
export type AuditRow = z.output<typeof auditRowSchema>;

/** A page of an audit trail. */
export const auditSchema = z.object({ actions: z.array(auditRowSchema), nextCursor });

/** Every action that an audit trail records. */
export const auditActions = [
  "project.created",
  "project.updated",
  "project.archived",
  "key.created",
  "key.revoked",
  "webhook.created",
  "webhook.deactivated",
  "webhook.reenabled",
  "webhook.rotated",
  "webhook.tested",
  "webhook.redelivered",
  "delivery.redelivered",
  "deposit",
  "charge",
  "refund",
  "user.forgotten",
  "stripe.reconciled",
  "secrets.resealed",
  "catalogue.refreshed",
  "upstream.tested",
  "alerts.tested",
  "alerts.confirmation_sent",
  "alerts.address_confirmed",
  "backup.created",
  "backup.restored",
  "data.exported",
  "wallet.join_asked",
  "wallet.join_withdrawn",
  "wallet.join_declined",
  "wallet.joined",
  "data.archived",
  "data.copied",
  "console.signed_in",
  "console.sign_in_refused",
  "console.key_refused",
  "admin.key_refused",
] as const;
/** The name of an action. */
export type AuditActionName = typeof auditActions[number];

/** The query of an audit trail. */
export const auditQuery = pageQuery.extend({
  action: z.enum(auditActions).optional().meta({ description: "Only this action." }),
  actor: z.string().optional().meta({
    description: "Only what this API key did, by its id, or `operator`, or `unknown`.",
  }),
});

/** Reads the filter of a query. Throws 400 for an action that no trail records. */
export function readAuditFilter(query: (name: string) => string | undefined): AuditFilter {
  const [action, actor] = [query("action") || undefined, query("actor") || undefined];
  const known = auditActions.find((name) => name === action);
  if (action !== undefined && known === undefined) {
    throw badRequest("action", `'action' must be one of ${auditActions.join(", ")}.`);
  }
  return { action: known, actor };
}

/** An action to record in the audit trail. */
export interface AuditAction {
  by: AuditActor;
  action: AuditActionName;
  /** The id of the affected object, or the user. */
  target: string;
  /** Further details, never a secret. Omitted when too large. */
  detail?: JsonObject;
}

/** Returns the actor for `ADMIN_KEY`. */
export function byOperator(
  via: AuditActor["via"],
  address: string | null = null,
): AuditActor {
  return { actor: { type: "operator", id: "operator" }, via, ...addressField(address) };
}

function addressField(address: string | null): { address?: string } {
  return address === null ? {} : { address };
}

/** Returns the actor for one of the project's keys. */
export function byApiKey(
  { id, suffix }: Pick<ApiKey, "id" | "suffix">,
  via: AuditActor["via"],
  address: string | null = null,
): AuditActor {
  return { actor: { type: "key", id, suffix }, via, ...addressField(address) };
}

/** Returns the actor with the address of a request. */
export function fromAddress(by: AuditActor, address: string | null): AuditActor {
  return { ...by, ...addressField(address) };
}

const detailBytesMax = 32 * 1024;

/**
 * Returns the audit row for the write that performs the action: neither exists without the other.
 * The trail is a project's, or with null the instance's own.
 */
export function auditRow(
  { id, clock }: Pick<Deps, "id"> & { clock: Pick<Deps["clock"], "now"> },
  projectId: string | null,
  { by, action, target, detail = {} }: AuditAction,
): { key: Key; value: Uint8Array<ArrayBuffer> } {
  const fits = utf8Length(JSON.stringify(detail)) <= detailBytesMax;
  const row: AuditRow = {
    id: id("aud"),
    at: new Date(clock.now()).toISOString(),
    ...by,
    action,
    target,
    detail: fits ? detail : { omitted: "more than 32 KiB" },
  };
  return { key: auditKey(projectId ?? instanceTrail, row.id), value: toBytes(row) };
}

/** Records an action that writes nothing else, such as a download. */
export async function recordAction(
  deps: Pick<Deps, "id" | "clock" | "committer">,
  projectId: string | null,
  auditAction: AuditAction,
): Promise<void> {
  const { key, value } = auditRow(deps, projectId, auditAction);
  await deps.committer.commit({ ...emptyWrite(), sets: [{ key, value }] });
}

/** Which rows of a trail to list. What is absent does not matter. */
interface AuditFilter {
  action?: AuditActionName | undefined;
  /** The id of an API key, `operator`, or `unknown`. */
  actor?: string | undefined;
}

/** A filtered page reads at most so many rows, and then leads on. */
const filteredRowsMax = 2_000;
const rowsPerRead = 500;

/**
 * Returns the page of a trail after `cursor`, newest first. A page of a filter may have fewer rows
 * than `limit`, and a cursor that leads on. Throws 400 for an invalid cursor.
 */
export async function listAudit(
  kv: Kv,
  projectId: string | null,
  { limit, cursor, filter = {} }: {
    limit: number;
    cursor: string | undefined;
    filter?: AuditFilter;
  },
): Promise<{ actions: AuditRow[]; nextCursor: string | null }> {
  if (cursor !== undefined && !isId("aud", cursor)) throw badCursor();
  const { action, actor } = filter;
  const trail = projectId ?? instanceTrail;
  const isFiltered = action !== undefined || actor !== undefined;
  const perRead = isFiltered ? rowsPerRead : limit + 1;
  const actions: AuditRow[] = [];
  // A page starts before the last row of the previous page.
  let last = cursor;
  for (let read = 0; read < filteredRowsMax; read += perRead) {
    const end = last === undefined ? {} : { end: auditKey(trail, last) };
    const rows = await kv.list({
      prefix: auditPrefix(trail),
      ...end,
      reverse: true,
      limit: perRead,
    });
    for (const { key, value } of rows) {
      if (actions.length === limit) return { actions, nextCursor: last ?? null };
      const row = value && fromBytes<AuditRow>(value);
      const isWanted = row && (action === undefined || row.action === action) &&
        (actor === undefined || row.actor.id === actor);
      if (isWanted) actions.push(row);
      last = String(key.at(-1));
    }
    if (rows.length < perRead) return { actions, nextCursor: null };
  }
  return { actions, nextCursor: last ?? null };
}

/** Lists all actions in a project, oldest first. */
export function listActions(kv: Kv, projectId: string): Listing {
  return (query) =>
    listByTime(kv, {
      prefix: auditPrefix(projectId),
      kind: "aud",
      read({ value }) {
        if (!value) return null;
        const record = fromBytesExactly<JsonObject>(value);
        return { createdAt: Date.parse(String(record.at)), record };
      },
    }, query);
}
