import assert from "node:assert/strict";
import { formatAmount, fromDecimal } from "../../src/base/money.ts";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { eventually, type Farebox, makeFolder, serviceEnv, startFarebox } from "./process.ts";
import { caPath, type Receiver, receiverEnv, startReceiver } from "./receiver.ts";
import {
  type Acknowledged,
  callUntilStopped,
  nothingSeen,
  type Role,
  type Seen,
  type Unsteady,
  users,
} from "./torture_callers.ts";
import { makeProject, sleep, startSlowUpstream } from "./traffic.ts";
import { mulberry32 } from "./random.ts";
import { adminKey, type Body } from "./world.ts";

/** The results of a torture run. */
interface Outcome {
  seed: number;
  seconds: number;
  kills: number;
  /** Crashes of the store's server. */
  storeCrashes: number;
  operations: number;
  /** Operations whose callers got a response that they are recorded. */
  acknowledged: number;
  refused: number;
  retried: number;
  replayed: number;
  streams: Seen["streams"];
  /** Entries in the ledger at the end. */
  entries: number;
  /** Entries for what a dead process had held. */
  expired: number;
  /** Acknowledged, and not in the ledger. */
  lost: number;
  /** Recorded twice under one key. */
  duplicates: number;
  /** Recorded, and the event never reached the subscriber. */
  eventsLost: number;
  /** Events that arrived more than once, which at-least-once allows. */
  eventsTwice: number;
  /** Pages of verification read under load. */
  pages: number;
  checked: Record<string, number>;
  faults: string[];
}

interface TortureOptions {
  seconds: number;
  seed: number;
  /** The longest life of a process, in ms; most are much shorter. */
  lifeMaxMs: number;
  /**
   * The URL of a PostgreSQL database, or of a KV Connect server, instead of a file; that server's
   * token is in the environment.
   */
  store?: string | undefined;
  /** Crashes the store's server, and brings it, or its successor, back. */
  crashStore?: (() => Promise<void>) | undefined;
  /** The number of services on that store, each killed separately; a file allows only one. */
  services?: number;
  onKill?(kills: number, seen: Seen): void;
}

const roles: readonly Role[] = [
  ...Array.from({ length: 6 }, () => "move" as const),
  ...Array.from({ length: 4 }, () => "stream" as const),
  ...Array.from({ length: 10 }, () => "ask" as const),
];
const holdsEndMs = 90_000;
const deliveredMs = 120_000;
/** A database that crashed needs some seconds until it can be used again. */
const startsMax = 60;
const storeCrashShare = 0.2;
const env = {
  ...serviceEnv,
  ...receiverEnv,
  LOG_LEVEL: "warn",
  WEBHOOK_TIMEOUT_MS: "500",
  WEBHOOK_BACKOFF_BASE_MS: "100",
  WEBHOOK_MAX_ATTEMPTS: "20",
};

/**
 * Kills a service at random moments under a mixed load, and then checks that every promise holds.
 */
export async function torture(options: TortureOptions): Promise<Outcome> {
  await using folder = await makeFolder();
  await using receiver = startReceiver();
  await using upstream = startSlowUpstream((n) => 5 + (n * 379) % 700);
  const DENO_CERT = await authoritiesIn(folder.path);
  const settings = { ...envOf(options), DENO_CERT, UPSTREAM_URL: upstream.url };
  const start = () => startAtLast({ folder: folder.path, env: settings });
  const random = mulberry32(options.seed);
  const fleet = await Promise.all(
    Array.from({ length: options.services ?? 1 }, async () => placeOf(await start())),
  );
  const any = () => fleet[Math.floor(random() * fleet.length)] ?? assert.fail();
  try {
    const { farebox: first } = any();
    const key = await makeProject(first);
    await subscribe(first, key, { receiver, random });
    const service: Unsteady = { key, random, stopping: false, current: () => any().next };
    const seen = nothingSeen();
    const calling = Promise.all(
      roles.map((role, id) => callUntilStopped(service, seen, { id, role })),
    );
    const verifying = verifyUntilStopped(service);
    const replace = async () => {
      const place = any();
      place.farebox.signal("SIGKILL");
      place.next = place.farebox.ended.then(start);
      place.farebox = await place.next;
    };
    let kills = 0;
    let storeCrashes = 0;
    for (const end = performance.now() + options.seconds * 1_000; performance.now() < end;) {
      await sleep(random() * random() * options.lifeMaxMs);
      if (options.crashStore && random() < storeCrashShare) {
        await options.crashStore();
        storeCrashes++;
        continue;
      }
      await replace();
      kills++;
      options.onKill?.(kills, seen);
    }
    service.stopping = true;
    await calling;
    const verified = await verifying;
    const { farebox } = any();
    await holdsEnd(farebox, key);
    const entries = await readEntries(farebox, key);
    const books = compare(entries, seen);
    const undelivered = () => entries.filter(({ id }) => !receiver.activities.has(id)).length;
    await eventually(() => undelivered() === 0, { withinMs: deliveredMs }).catch(() => {});
    const verdict = await verifyLedger({ url: farebox.url, adminKey });
    const faults = [...seen.faults, ...verified.faults, ...books.faults, ...verdict.faults];
    if (verdict.checked.holds !== 0) faults.push(`${verdict.checked.holds} holds have not ended`);
    if (receiver.forged > 0) faults.push(`${receiver.forged} deliveries are not signed`);
    return {
      seed: options.seed,
      seconds: options.seconds,
      kills,
      storeCrashes,
      operations: seen.operations,
      acknowledged: seen.acknowledged.size,
      refused: seen.refused,
      retried: seen.retried,
      replayed: seen.replayed,
      streams: seen.streams,
      entries: entries.length,
      expired: entries.filter(({ kind }) => kind === "expired").length,
      lost: books.lost,
      duplicates: books.duplicates,
      eventsLost: undelivered(),
      eventsTwice: [...receiver.events.values()].filter((count) => count > 1).length,
      pages: verified.pages,
      checked: verdict.checked,
      faults,
    };
  } finally {
    await Promise.all(fleet.map(({ farebox }) => farebox[Symbol.asyncDispose]()));
  }
}

/** Where services run, one after another. */
interface Place {
  farebox: Farebox;
  /** The running service, or the next one. */
  next: Promise<Farebox>;
}

const placeOf = (farebox: Farebox): Place => ({ farebox, next: Promise.resolve(farebox) });

/** A file with the authority of the receiver, and with those that this process trusts besides. */
async function authoritiesIn(folder: string): Promise<string> {
  const own = Deno.env.get("DENO_CERT");
  const texts = [caPath, ...own ? [own] : []].map((path) => Deno.readTextFile(path));
  const path = `${folder}/authorities.pem`;
  await Deno.writeTextFile(path, (await Promise.all(texts)).join("\n"));
  return path;
}

function envOf({ store }: TortureOptions): Record<string, string> {
  if (store === undefined) return env;
  const token = Deno.env.get("DENO_KV_ACCESS_TOKEN") ?? "";
  return { ...env, KV_PATH: store, DENO_KV_ACCESS_TOKEN: token };
}

/** Someone else may kill the server of the store too: a service that finds none starts again. */
async function startAtLast(how: Parameters<typeof startFarebox>[0]): Promise<Farebox> {
  for (let attempt = 1;; attempt++) {
    try {
      return await startFarebox(how);
    } catch (error) {
      if (attempt === startsMax) throw error;
      await sleep(500);
    }
  }
}

/** Delivers everything to a receiver that refuses, and is slow, now and then. */
async function subscribe(
  farebox: Farebox,
  key: string,
  { receiver, random }: { receiver: Receiver; random: () => number },
): Promise<void> {
  const { subscription } = await farebox.json("/v1/webhooks/subscriptions", {
    key,
    body: { url: receiver.url, events: ["*"] },
  });
  receiver.secret = subscription.secret;
  receiver.answer = async () => {
    const dice = random();
    if (dice < 0.01) await sleep(700);
    return new Response(null, { status: dice < 0.05 ? 500 : 200 });
  };
}

/**
 * Verifies everything again and again while it is written; a dead service's results do not count.
 */
async function verifyUntilStopped(service: Unsteady) {
  const whole = { pages: 0, faults: [] as string[] };
  while (!service.stopping) {
    const { url } = await service.current();
    let told: string[] = [];
    const onPage = (verdict: { faults: string[] }) => {
      whole.pages++;
      told = verdict.faults;
    };
    await verifyLedger({ url, adminKey, attemptsMax: 1, onPage }).catch(() => {});
    whole.faults.push(...told);
    await sleep(250);
  }
  return whole;
}

async function holdsEnd(farebox: Farebox, key: string): Promise<void> {
  const heldBy = async (user: string) =>
    (await farebox.json(`/v1/user/balance?user=${user}`, { key })).held;
  await eventually(async () => {
    const held = await Promise.all(users.map(heldBy));
    const { checked } = await verifyLedger({ url: farebox.url, adminKey });
    await sleep(500);
    return held.every((amount) => amount === "0") && checked.holds === 0;
  }, { withinMs: holdsEndMs, what: "the end of all holds" }).catch(() => {});
}

/** All entries of all users, as callers see them. */
async function readEntries(farebox: Farebox, key: string): Promise<Body[]> {
  const entries: Body[] = [];
  for (const user of users) {
    for (let cursor = ""; cursor !== null;) {
      const query = `user=${user}&limit=100${cursor && `&cursor=${cursor}`}`;
      const page: Body = await farebox.json(`/v1/user/activities?${query}`, { key });
      entries.push(...page.activities);
      cursor = page.nextCursor;
    }
  }
  return entries;
}

/** Compares callers' responses with the ledger. */
function compare(entries: readonly Body[], { acknowledged }: Seen) {
  const faults: string[] = [];
  const byId = Map.groupBy(entries, ({ id }) => String(id));
  let lost = 0;
  for (const told of acknowledged.values()) {
    const [entry, another] = byId.get(told.activityId) ?? [];
    if (!entry) lost++;
    else if (another || !agrees(entry, told)) {
      faults.push(`told ${JSON.stringify(told)}, booked ${JSON.stringify(entry)}`);
    }
  }
  const keyed = entries.filter(({ idempotencyKey }) => idempotencyKey !== null);
  const byKey = Map.groupBy(keyed, ({ idempotencyKey }) => String(idempotencyKey));
  const duplicates = [...byKey.values()].filter((group) => group.length > 1).length;
  // Every caller with a key has repeated until there was a response, so nothing else may be
  // recorded.
  for (const { id, idempotencyKey } of keyed) {
    if (!acknowledged.has(id)) faults.push(`${id} of ${idempotencyKey} is booked, and never told`);
  }
  return { lost, duplicates, faults };
}

function agrees(entry: Body, { kind, user, idempotencyKey, amount }: Acknowledged): boolean {
  const booked = amount === null || entry.amount === formatAmount(fromDecimal(amount));
  return booked && entry.kind === kind && entry.user === user &&
    entry.idempotencyKey === idempotencyKey;
}
