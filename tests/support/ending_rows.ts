import { createIds } from "../../src/base/ids.ts";
import { toBytes } from "../../src/base/json.ts";
import { type KeptKind, keptKinds } from "../../src/base/kept_kinds.ts";
import { putSession } from "../../src/console/store.ts";
import { type ExpiringKind, withExpiry } from "../../src/store/expiry.ts";
import { eventKey, requestsKey, topUsersKey } from "../../src/store/keys.ts";
import { emptyWrite, type Key, type Kv, type Write } from "../../src/store/kv.ts";
import { expiringKinds } from "../../src/sweeps.ts";
import { afterAttempt, newDelivery } from "../../src/webhooks/delivery/delivery.ts";
import { putDelivery } from "../../src/webhooks/delivery/delivery_rows.ts";

const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;
/** As the service has it where nothing is set. */
const retentionMs = 30 * dayMs;
const policy = { attemptsMax: 8, backoffBaseMs: 30_000 };

/** What a row belongs to, when it ends, and what tells it from the others. */
interface Ending {
  projectId: string;
  /** In milliseconds since 1970. */
  endsAt: number;
  name: string;
}

type Make = (ending: Ending) => Write["sets"];

const randomId = (at: number) => createIds(() => at, Math.random);

/** How long before its end each kind is written, where its rows say that and not their end. */
const lifetimes: Record<string, number> = {
  pending_payment: 30 * dayMs,
  stripe_reversal: 30 * dayMs,
  unbooked_payment: 90 * dayMs,
  unverified_events: 7 * dayMs,
  redelivery_job: 7 * dayMs,
  sent_confirmations: dayMs,
  paywalled: hourMs,
};

/** A value that ends at that time, of any of the kinds with an end of their own. */
function endingValue(kind: unknown, endsAt: number): Uint8Array {
  const since = endsAt - (lifetimes[String(kind)] ?? 0);
  if (kind === "paywalled" || kind === "target_health") return toBytes(since);
  const done = { status: "done", updatedAt: new Date(since).toISOString() };
  const attempts = [{ at: since }];
  const times = { at: since, keptAt: since, lastAt: since };
  return toBytes({ expiresAt: endsAt, endsAt, ...times, ...done, attempts });
}

/** A row of one of the kinds with an end of their own. */
export function endingRow({ prefix }: ExpiringKind, { projectId, endsAt, name }: Ending) {
  return { key: [...prefix, projectId, name] as Key, value: endingValue(prefix[0], endsAt) };
}

const expiring: [KeptKind, Make][] = expiringKinds.map((kind) => [
  keptKinds.find((name) => name === kind.prefix[0]) ?? "link",
  (ending) => withExpiry(kind, endingRow(kind, ending)),
]);

/** All kinds that are kept for a time, and how to make one that ends. */
export const endingKinds: ReadonlyMap<KeptKind, Make> = new Map<KeptKind, Make>([
  ...expiring,
  ["requests", ({ projectId, endsAt }) => [
    { key: requestsKey(projectId, randomId(endsAt - 30 * dayMs)("rql")), value: toBytes([]) },
  ]],
  ["event", ({ projectId, endsAt }) => [
    {
      key: eventKey(projectId, randomId(endsAt - retentionMs - 8 * dayMs)("evt")),
      value: toBytes({}),
    },
  ]],
  ["delivery", ({ projectId, endsAt, name }) => {
    const at = endsAt - retentionMs;
    const id = randomId(at);
    const named = {
      ...{ id: id("dly"), projectId, subscriptionId: "sub_1", eventId: id("evt") },
      ...{ eventType: "balance.deposit.created", eventVersion: "1.0" },
    };
    const isError = name.length % 2 === 0;
    const responseCode = isError ? 410 : 200;
    const attempt = { at, latencyMs: 3, responseCode, error: isError ? "status 410" : null };
    const ended = afterAttempt(
      newDelivery(named, at),
      { ...attempt, retryAfterMs: null, bodyHead: "" },
      { policy, random: 0.5 },
    );
    const write = emptyWrite();
    putDelivery(write, null, ended);
    return write.sets;
  }],
  ["top_users", ({ projectId, endsAt, name }) => {
    const at = new Date(endsAt - 100 * dayMs - dayMs).toISOString().slice(0, 10);
    // A day has 24 hours, so others of its rows only have names like theirs.
    return [{ key: topUsersKey(projectId, `h${at}T00 ${name}`), value: toBytes([]) }];
  }],
  ["console_session", ({ endsAt, name }) => {
    const write = emptyWrite();
    const holder = { kind: "operator", digest: "" } as const;
    putSession(write, name, { holder, endsAt, usedAt: endsAt, confirmedAt: endsAt });
    return write.sets;
  }],
]);

/** Writes rows, many at a time. */
export async function putRows(kv: Pick<Kv, "atomic">, rows: Write["sets"]): Promise<void> {
  for (let at = 0; at < rows.length; at += 400) {
    await kv.atomic({ ...emptyWrite(), sets: rows.slice(at, at + 400) });
  }
}

/** How many rows the store has under a prefix. */
export async function countUnder(kv: Kv, prefix: Key): Promise<number> {
  return (await kv.list({ prefix, limit: 1_000_000 })).length;
}
