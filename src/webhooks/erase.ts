import { z } from "zod";
import { badRequest } from "../base/errors.ts";
import { isObject, type Json, type JsonObject, toBytes } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Deps } from "../deps.ts";
import { decodeOutbox } from "../events/outbox.ts";
import {
  commitUnlessMoved,
  type ErasedPage,
  type Eraser,
  eraseRows,
  type Erasure,
} from "../store/erase.ts";
import {
  deliveryKey,
  eventsPrefix,
  freshPrefix,
  logPrefix,
  outboxKey,
  outboxPrefix,
  ownDeliveriesPrefix,
} from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { listAfter, readPlace, type ScanBudget } from "../store/scan.ts";
import { filterName } from "./delivery/delivery_rows.ts";
import type { Delivery } from "./schema.ts";
import { decodeDelivery, encodeDelivery, readDeliveries, readEventTexts } from "./store.ts";

type WebhookEraserDeps = Pick<Deps, "kv" | "committer">;

const rowsPerRead = 100;
/** How many pending deliveries an erasure looks through. With more, it waits. */
const pendingMax = 1_000;
const idPlace = z.string().max(64);

/**
 * Erases a user from events, in this order: the outbox, whose events have yet to become deliveries;
 * deliveries, including receivers' responses; and the events themselves.
 */
export function createWebhookErasers({ kv, committer }: WebhookEraserDeps): Eraser[] {
  return [
    {
      name: "outbox",
      refusal: (erasure) => refusalOf(kv, erasure),
      page: (erasure, place, budget) => waitForOutbox(kv, { erasure, place, budget }),
    },
    {
      name: "deliveries",
      page: (erasure, place, budget) =>
        eraseDeliveries({ kv, committer }, { erasure, place, budget }),
    },
    eraseRows({
      name: "events",
      kv,
      committer,
      prefix: ({ projectId }) => eventsPrefix(projectId),
      rewrite(row, erasure) {
        const text = textIfAbout(row.value && decodeUtf8(row.value), erasure);
        if (text === null || isLater(String(row.key[2]), erasure)) return null;
        return { sets: [{ key: row.key, value: renamedEvent(text, erasure) }], deletes: [] };
      },
    }),
  ];
}

interface Page {
  erasure: Erasure;
  place: Json | null;
  budget: ScanBudget;
}

/** The fields of an event that name users. Any other field may have the same text by chance. */
const namingFields = {
  subject: ["id", "externalId"],
  data: ["externalUserId", "walletUserId"],
  trigger: ["actorId"],
} as const;

/** Returns the text of an event that concerns the user, else null. */
function textIfAbout(text: string | null, { user }: Erasure): string | null {
  // As it appears within JSON: most events need not be parsed.
  if (text === null || !text.includes(JSON.stringify(user))) return null;
  const { subject, data, trigger } = JSON.parse(text);
  const names = [subject.externalId, data.externalUserId, data.walletUserId];
  if (isEndUser(trigger)) names.push(trigger.actorId);
  return names.includes(user) ? text : null;
}

/**
 * Whether a trigger's actor is an end user, and not `operator` or `stripe`, whatever a user is
 * called.
 */
function isEndUser(trigger: Json | undefined): boolean {
  return isObject(trigger) && trigger.actorType === "end-user";
}

/** Whether an event concerns someone new under the same name. */
function isLater(eventId: string, { until }: Erasure): boolean {
  return eventId >= until;
}

const linkFields: readonly string[] = ["approvalUrl", "redirectUrl"];

/**
 * Returns the event with the pseudonym, without metadata and without links, which are signed for
 * the user.
 */
function renamedEvent(text: string, { user, pseudonym }: Erasure): Uint8Array {
  const rename = (part: Json, fields: readonly string[]): Json => {
    if (!isObject(part)) return part;
    const renamed: JsonObject = {};
    for (const [name, value] of Object.entries(part)) {
      const isName = value === user && fields.includes(name);
      renamed[name] = linkFields.includes(name) ? "" : isName ? pseudonym : value;
    }
    return renamed;
  };
  const event: JsonObject = JSON.parse(text);
  const { subject = null, data = null, trigger = null } = event;
  return toBytes({
    ...event,
    subject: rename(subject, namingFields.subject),
    data: rename(data, namingFields.data),
    trigger: isEndUser(trigger) ? rename(trigger, namingFields.trigger) : trigger,
    metadata: {},
  });
}

/** Waits until all deliveries of the user's events have been written. */
async function waitForOutbox(kv: Kv, { erasure, place, budget }: Page): Promise<ErasedPage> {
  let after = place === null ? null : outboxKey(readPlace(idPlace, place));
  do {
    const rows = await listAfter(kv, outboxPrefix, { after, limit: rowsPerRead });
    budget.spend(rows.length + 1);
    const theirs = await eventsAbout(kv, rows.map(eventOfOutbox), erasure);
    if (theirs.some(({ eventId }) => !isLater(eventId, erasure))) {
      return { erased: 0, next: after && String(after[1]), waiting: true };
    }
    const last = rows.at(-1);
    if (!last || rows.length < rowsPerRead) return { erased: 0, next: null };
    after = last.key;
  } while (!budget.isUsedUp);
  return { erased: 0, next: String(after[1]) };
}

function eventOfOutbox({ key, value }: Row) {
  const projectId = value ? decodeOutbox(value).projectId : "";
  return { projectId, eventId: String(key[1]) };
}

/** Returns those of the events that concern the user. */
async function eventsAbout<E extends { projectId: string; eventId: string }>(
  kv: Kv,
  events: readonly E[],
  erasure: Erasure,
): Promise<E[]> {
  const own = events.filter(({ projectId }) => projectId === erasure.projectId);
  const texts = await readEventTexts(kv, own);
  return own.filter((_, at) => textIfAbout(texts[at] ?? null, erasure) !== null);
}

/** Erases a user from deliveries: a receiver's response may repeat what it was sent. */
async function eraseDeliveries(
  { kv, committer }: WebhookEraserDeps,
  { erasure, place, budget }: Page,
): Promise<ErasedPage> {
  const { projectId } = erasure;
  let after = place === null ? null : deliveryKey(projectId, readPlace(idPlace, place));
  let erased = 0;
  do {
    const rows = await listAfter(kv, ownDeliveriesPrefix(projectId), { after, limit: rowsPerRead });
    budget.spend(2 * rows.length + 1);
    const deliveries = rows.flatMap(({ value, version }) =>
      value ? [{ ...decodeDelivery(value), version }] : []
    );
    const about = await eventsAbout(kv, deliveries, erasure);
    const theirs = about.filter(({ eventId }) => !isLater(eventId, erasure));
    const stays = { erased, next: after && String(after[2]), waiting: true };
    if (theirs.some(({ status }) => status === "pending")) return stays;
    for (const { version, ...delivery } of theirs) {
      const key = deliveryKey(projectId, delivery.id);
      const value = encodeDelivery({ ...delivery, responseHead: null });
      if (
        !(await commitUnlessMoved(committer, { key, version }, {
          sets: [{ key, value }],
          deletes: [],
        }))
      ) {
        return stays;
      }
    }
    erased += theirs.length;
    const last = rows.at(-1);
    if (!last || rows.length < rowsPerRead) return { erased, next: null };
    after = last.key;
  } while (!budget.isUsedUp);
  return { erased, next: String(after[2]) };
}

/** Refuses an erasure while subscribers have yet to receive events that name the user. */
async function refusalOf(kv: Kv, erasure: Erasure) {
  const { projectId } = erasure;
  const [waiting, logged, fresh] = await Promise.all([
    kv.list({ prefix: outboxPrefix, limit: pendingMax }),
    kv.list({ prefix: logPrefix(projectId, filterName({}, "pending")), limit: pendingMax }),
    kv.list({ prefix: freshPrefix(projectId), limit: pendingMax }),
  ]);
  const ids = [...logged.map(({ key }) => key[3]), ...fresh.map(({ key }) => key[2])].map(String);
  const rows = await readDeliveries(kv, ids.map((id) => ({ projectId, id })));
  const pending: Pick<Delivery, "projectId" | "eventId">[] = rows.flatMap((row) =>
    row?.value.status === "pending" ? [row.value] : []
  );
  const theirs = await eventsAbout(kv, [...waiting.map(eventOfOutbox), ...pending], erasure);
  if (theirs.length === 0) return null;
  const what = theirs.length === 1 ? "1 delivery" : `${theirs.length} deliveries`;
  return badRequest(null, `${what} of this user's events are pending.`, "deliveries_pending");
}
