import { AsyncLocalStorage } from "node:async_hooks";
import { TargetBreaker } from "../../src/upstreams/target_breaker.ts";
import { fromBytes } from "../../src/base/json.ts";
import { eventsPrefix } from "../../src/store/keys.ts";
import type { CallKind } from "./call_kinds.ts";
import { projectOf } from "./call_kinds.ts";
import { createScriptedStore, type ScriptedStore } from "./store.ts";
import { subscribe } from "./webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "./world.ts";

/** A world for one call of a kind, and its store. */
export interface CallWorld extends Disposable {
  world: World;
  store: ScriptedStore;
}

/** The most bytes that are parsed of a body, and of an event. */
export const callEnv = { UPSTREAM_BODY_BYTES_MAX: "2000", UPSTREAM_EVENT_BYTES_MAX: "2000" };

/** Ada has 1, and a subscriber hears of her calls. `upstream`: settings of each upstream. */
export async function openCallWorld(kind: CallKind, upstream: Body): Promise<CallWorld> {
  const store = createScriptedStore();
  const project = projectOf(kind, upstream);
  const world = await createWorld({ wrapKv: store.wrap, project, env: callEnv });
  await world.deposit("ada", "1");
  if (kind.isHit) {
    // Bob's response is kept, so that all that is Ada's belongs to her call.
    await world.deposit("bob", "1");
    world.upstream.once(() => wholeBody(kind));
    const body = { ...kind.body, user: "bob", stream: false };
    await (await world.call(kind.path, { body })).body?.cancel();
  }
  await subscribe(world, { events: ["proxy.*"] });
  return { world, store, [Symbol.dispose]: () => world[Symbol.dispose]() };
}

/** A kind's whole body, at once. */
export function wholeBody({ sent: { type, head, text, rest } }: CallKind): Response {
  return new Response(head + text + rest, { headers: { "content-type": type } });
}

/** Has the upstreams answer whole; the first of two fails where the second's answer is meant. */
export function replyTo(
  world: World,
  kind: CallKind,
  answer: () => Response | Promise<Response> = () => wholeBody(kind),
): void {
  world.upstream.reply(({ url }) => {
    const isMain = new URL(url).hostname === "main.example";
    if (kind.routed === "second" && isMain) return new Response("{}", { status: 401 });
    return kind.routed === "first" && !isMain ? wholeBody(kind) : answer();
  });
}

/** Makes the call. */
export async function callKind(
  world: World,
  { path, body, file, hasKey }: CallKind,
  signal?: AbortSignal,
): Promise<Response> {
  const headers = {
    ...{ "x-service-user": "ada", "x-request-id": "the-call" },
    ...(hasKey ? { "idempotency-key": "k" } : {}),
  };
  const options = { headers, keepClock: true, ...(signal ? { signal } : {}) };
  if (!file) return await world.call(path, { body, ...options });
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) form.append(name, value);
  form.append("file", file, "speech.wav");
  const encoded = new Response(form);
  const type = encoded.headers.get("content-type") ?? "";
  const raw = await encoded.bytes();
  return await world.call(path, {
    ...options,
    raw,
    headers: { ...headers, "content-type": type },
  });
}

/** Ada's entries besides her deposit, as `usage 0.00002`. */
export async function chargesOf(world: World): Promise<string[]> {
  const entries = await world.activities("ada");
  return entries.filter(({ kind }) => kind !== "deposit").map(({ kind, amount }) =>
    `${kind} ${amount}`
  );
}

/** The events that tell how Ada's calls have ended, as `failed upstream_error`. */
export async function endingsTold(world: World): Promise<string[]> {
  const rows = await world.deps.kv.list({ prefix: eventsPrefix(world.projectId), limit: 100 });
  const events = rows.map(({ value }) => fromBytes<Body>(value ?? new Uint8Array()));
  return events.filter(({ subject }) => subject.externalId === "ada").flatMap(({ type, data }) => {
    const told = /^proxy\.request\.(completed|failed|canceled)$/.exec(type)?.[1];
    return told ? [told + (data.errorCode ? ` ${data.errorCode}` : "")] : [];
  });
}

/** The rows that the log of requests has of Ada's calls, as `failed 502 upstream_error`. */
export async function rowsOf(world: World): Promise<string[]> {
  const path = `/v1/admin/projects/${world.projectId}/requests?user=ada`;
  const { body } = await world.json(path, { key: adminKey });
  return body.requests.map(({ outcome, status, reason }: Body) =>
    `${outcome} ${status}${reason ? ` ${reason}` : ""}`
  );
}

/** Counts what a part of the metrics has counted since, by the names of the counters. */
export function countFrom(
  counters: Record<string, { readonly value: number }>,
): () => string[] {
  const before = new Map(Object.entries(counters).map(([name, { value }]) => [name, value]));
  return () =>
    Object.entries(counters).flatMap(([name, { value }]) =>
      Array.from({ length: value - (before.get(name) ?? 0) }, () => name)
    );
}

/** The notes of one cell of a table, beside others that run meanwhile. */
export interface Cell {
  /** Outcomes that breakers were told. */
  told: string[];
}

/** The cell that the current work belongs to. */
export const currentCell = new AsyncLocalStorage<Cell>();

/** Has each cell note what its breakers are told. */
function noteBreakers(): void {
  const methods = TargetBreaker.prototype as unknown as Record<
    string,
    (...given: unknown[]) => unknown
  >;
  let isWithin = false;
  for (const name of ["answer", "succeed", "fail", "end"]) {
    const original = methods[name];
    methods[name] = function (this: unknown, ...given: unknown[]) {
      if (isWithin) return original?.apply(this, given);
      currentCell.getStore()?.told.push(name);
      isWithin = true;
      try {
        return original?.apply(this, given);
      } finally {
        isWithin = false;
      }
    };
  }
}

noteBreakers();
