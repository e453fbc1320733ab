import assert from "node:assert/strict";
import { ApiError } from "../../src/base/errors.ts";
import { allChatReplaysPrefix } from "../../src/store/request_keys.ts";
import type { CallKind } from "./call_kinds.ts";
import {
  callKind,
  type CallWorld,
  type Cell,
  chargesOf,
  countFrom,
  currentCell,
  endingsTold,
  openCallWorld,
  replyTo,
  rowsOf,
  wholeBody,
} from "./call_world.ts";
import { plant } from "./plant.ts";
import { keysUnder, verify } from "./verify.ts";
import type { World } from "./world.ts";

/** A part of an upstream's body; `beyond` comes in place of the rest. */
type Part = "head" | "text" | "rest" | "error" | "beyond";

/** What the upstream, the caller and the service do to a call, so that it ends in one way. */
export interface CallScript {
  /** The upstream's status; 200 by default. */
  status?: number;
  /** Before the upstream answers. */
  afterMs?: number;
  /**
   * The parts that the upstream sends; absent: it never answers, or not before the caller has left.
   */
  sends?: readonly Part[];
  /** The event after these parts; by default, the body ends. */
  then?: "breaks off" | "the caller leaves" | "time passes" | "the service stops";
  /** The caller leaves before anything is sent upstream. */
  leavesFirst?: true;
  /** The upstream is read to its end after that. */
  drains?: true;
  ours?: "a step throws" | "the charge is refused for a while" | "the hold expires";
}

/** The observed results of a call that has ended. */
export interface Outcome {
  caller: string;
  charges: string[];
  held: string;
  /** Events of its ending. */
  events: string[];
  /** Rows in the log of requests. */
  rows: string[];
  /** Calls by how they ended, and upstream errors, as metrics count them. */
  counted: { calls: string[]; errors: string[] };
  /** The response of the same request under the same idempotency key. */
  key?: string;
  /** Attempts of its targets, as metrics count them, and what breakers were told. */
  targets?: { attempts: string[]; breakers: string[] };
  /** Faults that the verification finds. */
  faults: string[];
}

const stopping = new ApiError(503, {
  message: "The service is stopping.",
  type: "service_unavailable_error",
  code: "server_shutdown",
});
const deadlineMs = 1_000;
const lateMs = 2_500;

/** Makes a call of a kind, ends it, and returns what is seen of it. */
export function endCall(kind: CallKind, script: CallScript): Promise<Outcome> {
  const cell: Cell = { told: [] };
  return currentCell.run(cell, () => endInCell(kind, script, cell));
}

async function endInCell(kind: CallKind, script: CallScript, cell: Cell): Promise<Outcome> {
  const { then, drains } = script;
  using opened = await openCallWorld(kind, {
    ...(then === "time passes" ? { timeouts: { totalMs: deadlineMs } } : {}),
    ...(then === "the caller leaves" ? { onAbort: drains ? "drain" : "estimate" } : {}),
  });
  const { of, method, within } = kind.step;
  const isHere = () => currentCell.getStore() === cell;
  using planted = script.ours === "a step throws" ? plant(of, method, { within, isHere }) : null;
  const { world } = opened;
  const { metrics } = world.deps;
  const calls = Object.values(metrics.chats).map((counters) => countFrom(counters));
  const errors = countFrom(metrics.upstreamErrors);
  const attempts = ["main", "spare"].map((name) => ({
    name,
    counted: countFrom(metrics.target(name).attempts),
  }));
  const caller = await runCall(opened, kind, {
    script,
    arm: () => planted && (planted.isArmed = true),
  });
  assert.ok(!planted || planted.hasThrown, "the step was not reached");
  return {
    caller: caller.fault ?? (caller.isGone ? "gone" : seenBy(kind, caller)),
    charges: await chargesOf(world),
    held: (await world.balance("ada")).held,
    events: await endingsTold(world),
    rows: await rowsOf(world),
    counted: { calls: calls.flatMap((counted) => counted()), errors: errors().sort() },
    ...(kind.routed
      ? {
        targets: {
          attempts: attempts.flatMap(({ name, counted }) =>
            counted().map((outcome) => `${name} ${outcome}`)
          ).sort(),
          breakers: [...cell.told],
        },
      }
      : {}),
    ...(kind.hasKey ? { key: await keyOf(world, kind, caller) } : {}),
    faults: (await verify(world)).faults,
  };
}

/** The part of a response that the caller has got so far. */
interface Caller {
  response: Response | null;
  text: string;
  isBroken: boolean;
  isGone: boolean;
  /** Why there is no response: it is not in the API document. */
  fault: string | null;
}

async function runCall(
  { world, store }: CallWorld,
  kind: CallKind,
  { script, arm }: { script: CallScript; arm: () => void },
): Promise<Caller> {
  const left = new AbortController();
  const upstream = scriptUpstream(world, kind, { script, onAsked });
  const caller: Caller = { response: null, text: "", isBroken: false, isGone: false, fault: null };
  const leave = async () => {
    caller.isGone = true;
    left.abort();
    await reader?.cancel();
  };
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  function onAsked() {
    arm();
    // Its wall clock jumps, as after a pause of the machine: no timer of ours has run.
    if (script.ours === "the hold expires") world.clock.set(61_000);
    if (script.ours === "the charge is refused for a while") refuseCharges(store, 3);
  }
  // A hit asks nobody: its hold is the only write before its charge.
  if (kind.isHit) {
    store.atomic = async (write, real) => {
      const written = await real(write);
      store.atomic = null;
      onAsked();
      return written;
    };
  }
  if (script.leavesFirst) {
    await leave();
    upstream.goOn();
  }
  const answered = callKind(world, kind, left.signal).then((response) => {
    caller.response = response;
    reader = response.body?.getReader();
  });
  const done = answered.then(() => read(caller, reader)).catch((error) => {
    caller.fault = String(error);
  });
  if (script.afterMs || script.then) await Promise.race([upstream.waits, done]);
  if (script.afterMs) await world.clock.advance(lateMs);
  if (script.then === "time passes") await world.clock.advance(deadlineMs);
  if (script.then === "the service stops") world.app.running.cutAll(stopping);
  if (script.then === "the caller leaves" && !script.leavesFirst) {
    // A stream of events has begun with its first output.
    if (kind.gets !== "whole" && kind.isReadByEvent && script.sends?.includes("text")) {
      await answered;
    }
    const leaving = leave();
    upstream.goOn();
    await leaving;
  }
  await ended(world, Promise.all([done, world.app.running.idle()]), kind, script);
  return caller;
}

/** Waits for work, which may wait for the clock. */
async function ended(
  world: World,
  work: Promise<unknown>,
  { routed }: CallKind,
  script: CallScript,
) {
  let isOver = false;
  const over = work.then(() => (isOver = true));
  const { status, sends, ours } = script;
  // Only these wait for a time of their own: before an attempt or a write is repeated.
  const repeats = routed === "second" &&
    (status === 500 || (sends?.includes("error") && !sends.includes("text")));
  const waits = repeats || ours === "the charge is refused for a while";
  for (let step = 0; waits && !isOver; step++) {
    assert.ok(step < 100, "it does not end, however the clock moves");
    await world.clock.advance(500);
  }
  await over;
}

async function read(
  caller: Caller,
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
): Promise<void> {
  const decoder = new TextDecoder();
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      caller.text += decoder.decode(piece.value, { stream: true });
    }
  } catch {
    caller.isBroken = true;
  }
}

/** Has the store refuse the next writes that charge. */
function refuseCharges(store: CallWorld["store"], times: number): void {
  let left = times;
  store.atomic = async (write, real) => {
    const charges = write.sets.some(({ key }) => key[0] === "entry");
    if (!charges || left-- <= 0) return await real(write);
    throw new TypeError("the store is unavailable");
  };
}

/** Has the upstream of the call send what the script says. */
function scriptUpstream(
  world: World,
  kind: CallKind,
  { script, onAsked }: { script: CallScript; onAsked: () => void },
) {
  const waiting = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  const answer = async () => {
    onAsked();
    const { status = 200, then } = script;
    const isSilent = status === 200 && !script.sends;
    if (script.afterMs || isSilent) waiting.resolve();
    if (script.afterMs) await world.clock.sleep(lateMs);
    if (isSilent) await going.promise;
    if (status !== 200) {
      return Response.json({ error: { message: "no", code: "no_way" } }, { status });
    }
    const { sends = [] } = script;
    const parts = sends.map((part) => kind.sent[part] ?? assert.fail(`no ${part}`));
    const rest = then === "the caller leaves"
      ? (["head", "text", "rest"] as const).slice(sends.length).map((part) => kind.sent[part])
      : [];
    const body = bodyOf(parts, async () => {
      if (then === "breaks off") throw new TypeError("the connection is closed");
      if (then === undefined) return [];
      waiting.resolve();
      await going.promise;
      return rest;
    });
    return new Response(body, { headers: { "content-type": kind.sent.type } });
  };
  replyTo(world, kind, answer);
  return { waits: waiting.promise, goOn: () => going.resolve() };
}

/** A body of these parts, one read each; `more` is asked for others at their end. */
function bodyOf(parts: string[], more: () => Promise<string[]>): ReadableStream<Uint8Array> {
  const left = [...parts];
  let hasAsked = false;
  return new ReadableStream({
    async pull(controller) {
      if (left.length === 0 && !hasAsked) {
        hasAsked = true;
        left.push(...await more());
      }
      const part = left.shift();
      if (part === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(part));
    },
  }, { highWaterMark: 0 });
}

/** Frames that end a stream after an error. */
const errorFrame = /^(event: (error|response\.failed)|data: \{"error")/m;

function seenBy({ gets }: CallKind, { response, text, isBroken }: Caller): string {
  const { status = 0, headers = new Headers() } = response ?? {};
  if (isBroken) return `${status}, broken off`;
  if (gets !== "whole" && status === 200) {
    return errorFrame.test(text) ? "200, then an error" : "200";
  }
  const cost = headers.get("x-service-cost");
  const isLast = headers.get("x-should-retry") === "false";
  return `${status}${cost === null ? "" : ` for ${cost}`}${isLast ? ", not to be repeated" : ""}`;
}

/** The row that a call has left under its key. */
async function keyOf(world: World, kind: CallKind, caller: Caller): Promise<string> {
  const rows = await keysUnder(world, allChatReplaysPrefix);
  const again = await repeated(world, kind, caller);
  return again === "is free" && rows.length > 0 ? "is free, and has a row" : again;
}

/** The response of the same request under its key, now that the upstream answers as usual. */
export async function repeated(
  world: World,
  kind: CallKind,
  { response: first, text: firstText, isGone }: Pick<Caller, "response" | "text" | "isGone">,
): Promise<string> {
  const before = world.upstream.calls.length;
  world.upstream.reply(() => wholeBody(kind));
  const response = await callKind(world, kind);
  const text = await response.text();
  if (response.headers.get("idempotent-replayed") !== "true") {
    assert.equal(response.status, 200, text);
    return "is free";
  }
  assert.equal(world.upstream.calls.length, before);
  if (!isGone) assert.deepEqual([response.status, text], [first?.status, firstText]);
  return `has a ${response.status}`;
}
