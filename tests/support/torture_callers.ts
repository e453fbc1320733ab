import assert from "node:assert/strict";
import { type ModelFormat, pickFormat } from "./model_formats.ts";
import type { Farebox } from "./process.ts";
import { sleep } from "./traffic.ts";
import type { Body } from "./world.ts";

/** A service that is killed and restarted: callers look up where it is now. */
export interface Unsteady {
  /** The running service, or the next one. */
  current(): Promise<Farebox>;
  /** The key of its project. */
  key: string;
  random(): number;
  /** No new operations; those under way continue until they have a response. */
  stopping: boolean;
}

/** An operation with a key, and the response that its caller got in the end. */
export interface Acknowledged {
  kind: "deposit" | "charge" | "refund" | "usage";
  user: string;
  idempotencyKey: string | null;
  activityId: string;
  /** Null where the service decides it. */
  amount: string | null;
}

/** The observations of callers. */
export interface Seen {
  operations: number;
  /** Successful responses, by activity id. */
  acknowledged: Map<string, Acknowledged>;
  /** Refusals, such as for lack of money. */
  refused: number;
  /** Repeated with the same key, because no response came. */
  retried: number;
  /** Of those, the ones that had landed before. */
  replayed: number;
  streams: { ended: number; left: number; broken: number };
  /** Responses that break a promise. */
  faults: string[];
}

export function nothingSeen(): Seen {
  return {
    operations: 0,
    acknowledged: new Map(),
    refused: 0,
    retried: 0,
    replayed: 0,
    streams: { ended: 0, left: 0, broken: 0 },
    faults: [],
  };
}

export const users = ["ada", "bob", "cyd", "dan", "eve"];
const attemptMs = 30_000;
const cap = 200;

function formatFor({ random }: Unsteady, streams: boolean): ModelFormat {
  const between = (least: number, most: number) => least + random() * (most - least);
  return pickFormat({ between }, streams);
}

/** A caller's operations, one after another; with a key it may wait for a dead process's hold. */
export type Role = "move" | "stream" | "ask";

/** One caller. */
export async function callUntilStopped(
  service: Unsteady,
  seen: Seen,
  { id, role }: { id: number; role: Role },
): Promise<void> {
  const { random } = service;
  for (let n = 0; !service.stopping; n++) {
    const user = users[Math.floor(random() * users.length)] ?? "ada";
    const key = `caller-${id}-${n}`;
    seen.operations++;
    if (role === "ask") await askWhole(service, seen, { user, key });
    else if (role === "stream") await askStreamed(service, seen, { user, leave: random() < 0.4 });
    else await moveOnce(service, seen, { user, key });
    await sleep(random() * 20);
  }
}

async function moveOnce(
  service: Unsteady,
  seen: Seen,
  { user, key }: { user: string; key: string },
): Promise<void> {
  const dice = service.random();
  if (dice < 0.2) return await refundOne(service, seen, { user, key });
  const amount = (service.random() * 2 + 0.001).toFixed(3);
  await move(service, seen, { kind: dice < 0.65 ? "deposit" : "charge", user, amount, key });
}

interface Movement {
  kind: "deposit" | "charge" | "refund";
  user: string;
  amount: string;
  key: string;
  activityId?: string;
}

const paths = {
  deposit: "/v1/user/balance/deposit",
  charge: "/v1/user/charge",
  refund: "/v1/user/refund",
};

async function move(service: Unsteady, seen: Seen, movement: Movement): Promise<void> {
  const { kind, key, ...body } = movement;
  const answer = await askUntilAnswered(service, seen, { path: paths[kind], key, body });
  if (answer.status !== 200 || !answer.body.success) {
    const { code } = answer.body.error ?? {};
    const expected = answer.status === 200 || code === "refund_exceeds_original";
    if (!expected) seen.faults.push(`${kind} ${key}: ${answer.status} ${JSON.stringify(answer)}`);
    seen.refused++;
    return;
  }
  note(seen, {
    kind,
    user: body.user,
    idempotencyKey: key,
    activityId: answer.body.activityId,
    amount: kind === "refund" ? null : body.amount,
  });
}

async function refundOne(
  service: Unsteady,
  seen: Seen,
  { user, key }: { user: string; key: string },
): Promise<void> {
  const own = [...seen.acknowledged.values()].slice(-50).filter((done) =>
    done.user === user && done.kind !== "refund"
  );
  const original = own[Math.floor(service.random() * own.length)];
  if (!original) return;
  const { activityId } = original;
  await move(service, seen, { kind: "refund", user, amount: "0.00001", key, activityId });
}

async function askWhole(
  service: Unsteady,
  seen: Seen,
  { user, key }: { user: string; key: string },
): Promise<void> {
  const format = formatFor(service, false);
  const body = format.body({ user, stream: false, cap });
  const path = `/v1${format.path}`;
  const answer = await askUntilAnswered(service, seen, { path, key, user, body });
  // An endpoint without text refuses by 402.
  if (answer.status !== 200 && answer.status !== 402) {
    seen.faults.push(`chat ${key}: ${JSON.stringify(answer)}`);
  }
  const activityId = answer.activityId;
  if (activityId === null) return void seen.refused++;
  note(seen, { kind: "usage", user, idempotencyKey: key, activityId, amount: null });
}

function note(seen: Seen, done: Acknowledged): void {
  if (seen.acknowledged.has(done.activityId)) {
    seen.faults.push(`${done.activityId} is the answer to two keys`);
  }
  seen.acknowledged.set(done.activityId, done);
}

interface Answer {
  status: number;
  body: Body;
  activityId: string | null;
}

/** Repeats with the same key until there is a response, whichever process dies. */
async function askUntilAnswered(
  service: Unsteady,
  seen: Seen,
  { path, key, user, body }: { path: string; key: string; user?: string; body: unknown },
): Promise<Answer> {
  for (let attempt = 0;; attempt++) {
    if (attempt === 1) seen.retried++;
    try {
      const response = await send(service, { path, key, user, body });
      const answered = { status: response.status, body: await response.json() };
      if (response.status < 500) {
        const replayed = response.headers.get("idempotent-replayed") === "true";
        if (replayed && attempt === 0) seen.faults.push(`${key} was new, and is replayed`);
        if (replayed) seen.replayed++;
        return { ...answered, activityId: response.headers.get("x-service-activity-id") };
      }
      if (response.status === 500) seen.faults.push(`${key}: ${JSON.stringify(answered)}`);
    } catch {
      // It has died, or its answer did not arrive whole.
    }
    await sleep(20);
  }
}

async function send(
  service: Unsteady,
  { path, key, user, body, signal }: {
    path: string;
    key?: string;
    user?: string | undefined;
    body: unknown;
    signal?: AbortSignal;
  },
): Promise<Response> {
  const { url } = await service.current();
  return await fetch(url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${service.key}`,
      "content-type": "application/json",
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...(user === undefined ? {} : { "x-service-user": user }),
    },
    body: JSON.stringify(body),
    signal: signal ?? AbortSignal.timeout(attemptMs),
  });
}

/** A stream is not repeated: its cost is in the ledger. */
async function askStreamed(
  service: Unsteady,
  seen: Seen,
  { user, leave }: { user: string; leave: boolean },
): Promise<void> {
  const leaving = new AbortController();
  const format = formatFor(service, true);
  const body = format.body({ user, stream: true, cap });
  try {
    const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(attemptMs)]);
    const response = await send(service, { path: `/v1${format.path}`, user, body, signal });
    const activityId = response.headers.get("x-service-activity-id");
    if (leave) {
      await response.body?.getReader().read();
      leaving.abort();
      return void seen.streams.left++;
    }
    const text = await response.text();
    if (!format.hasEnded(text)) return void seen.streams.broken++;
    seen.streams.ended++;
    if (response.headers.has("x-service-paywall")) return;
    assert.ok(activityId, text);
    note(seen, { kind: "usage", user, idempotencyKey: null, activityId, amount: null });
  } catch (error) {
    assert.ok(!(error instanceof assert.AssertionError), String(error));
    seen.streams.broken++;
  }
}
