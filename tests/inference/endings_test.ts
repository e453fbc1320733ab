import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { type CallScript, endCall, type Outcome } from "../support/call_endings.ts";
import { type CallKind, callKinds, type Costs } from "../support/call_kinds.ts";

// Each way in which a call can end, with each kind of body. What is to be seen of a cell follows
// from the rule in this file.

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

/** Who ends a call. A clean stop of the service ends it as the upstream does. */
type By = "nobody" | "the upstream" | "its caller" | "our bound" | "our deadline" | "our fault";

/** How far a call has come when it ends: what its upstream has sent by then. */
const stages = ["unsent", "asked", "answered", "begun", "text", "whole"] as const;
type Stage = typeof stages[number];

/** An error: its kind as metrics count it, its status, its code. */
type Failure = readonly [kind: string, status: number, code: string];

interface Ending {
  name: string;
  by: By;
  at: Stage;
  script: CallScript;
  error: Failure | null;
}

const all = { sends: ["head", "text", "rest"] } as const;
const toHead = { sends: ["head"] } as const;
const toText = { sends: ["head", "text"] } as const;
const nothing = { sends: [] } as const;
const leaves = { then: "the caller leaves" } as const;
const leavesFirst = { ...leaves, leavesFirst: true } as const;
const drained = { ...leaves, drains: true } as const;
const passes = { then: "time passes" } as const;
const breaks = { then: "breaks off" } as const;
const stops = { then: "the service stops" } as const;

const refused: Failure = ["refused", 400, "no_way"];
const failed: Failure = ["failed", 502, "upstream_error"];
const overloaded: Failure = ["failed", 529, "upstream_error"];
const invalid: Failure = ["invalid", 502, "upstream_error"];
const broken: Failure = ["broken_off", 502, "upstream_error"];
const account: Failure = ["account", 502, "upstream_unavailable"];
const tooLarge: Failure = ["too_large", 502, "response_too_large"];
const timeout: Failure = ["timeout", 504, "upstream_timeout"];
const stopped: Failure = ["ended", 503, "server_shutdown"];
const gone: Failure = ["ended", 499, ""];
const fault: Failure = ["", 500, "internal_error"];
const lost: Failure = ["", 503, "hold_lost"];

/** One side of the table; the other is `callKinds`. */
const endings = ([
  ["complete", "nobody", "whole", all],
  ["refused by the upstream", "the upstream", "asked", { status: 400 }, refused],
  ["failed by the upstream", "the upstream", "asked", { status: 500 }, failed],
  ["failed late", "the upstream", "asked", { status: 500, afterMs: 2_500 }, failed],
  ["an empty body", "the upstream", "answered", nothing, invalid],
  ["an error first", "the upstream", "answered", { sends: ["error"] }, overloaded],
  ["an error before text", "the upstream", "begun", { sends: ["head", "error"] }, overloaded],
  ["an end before text", "the upstream", "begun", toHead, invalid],
  ["an error after text", "the upstream", "text", { sends: ["head", "text", "error"] }, overloaded],
  ["broken off at once", "the upstream", "answered", { ...nothing, ...breaks }, broken],
  ["broken off before text", "the upstream", "begun", { ...toHead, ...breaks }, broken],
  ["broken off after text", "the upstream", "text", { ...toText, ...breaks }, broken],
  ["stopped unanswered", "the upstream", "asked", stops, stopped],
  ["stopped before text", "the upstream", "begun", { ...toHead, ...stops }, stopped],
  ["stopped after text", "the upstream", "text", { ...toText, ...stops }, stopped],
  ["left unsent", "its caller", "unsent", leavesFirst, gone],
  ["left unanswered", "its caller", "asked", leaves, gone],
  ["left before text", "its caller", "begun", { ...toHead, ...leaves }, gone],
  ["left after text", "its caller", "text", { ...toText, ...leaves }, gone],
  ["left unsent, drained", "its caller", "unsent", { ...leavesFirst, drains: true }, gone],
  ["left unanswered, drained", "its caller", "asked", drained, gone],
  ["left before text, drained", "its caller", "begun", { ...toHead, ...drained }, gone],
  ["left after text, drained", "its caller", "text", { ...toText, ...drained }, gone],
  ["too large", "our bound", "text", { sends: ["head", "text", "beyond"] }, tooLarge],
  ["too long unanswered", "our deadline", "asked", passes, timeout],
  ["too long before text", "our deadline", "begun", { ...toHead, ...passes }, timeout],
  ["too long after text", "our deadline", "text", { ...toText, ...passes }, timeout],
  ["a step throws", "our fault", "text", { ...all, ours: "a step throws" }, fault],
  ["a late charge", "nobody", "whole", { ...all, ours: "the charge is refused for a while" }],
  ["a lost hold", "nobody", "whole", { ...all, ours: "the hold expires" }, lost],
] as readonly (readonly [string, By, Stage, CallScript, Failure?])[])
  .map(([name, by, at, script, error = null]): Ending => ({ name, by, at, script, error }));

const isEvents = ({ sent }: CallKind) => sent.type === "text/event-stream";
const isStream = ({ gets }: CallKind) => gets === "streamed";
const hasCome = (at: Stage, least: Stage) => stages.indexOf(at) >= stages.indexOf(least);

/** Whether a cell can occur. */
function canOccur(kind: CallKind, { by, at, script }: Ending): boolean {
  const { sends = [], drains } = script;
  // The cache answers at once, and nobody else is asked.
  if (kind.isHit && by !== "nobody" && by !== "our fault" && at !== "unsent") return false;
  // Sound holds no error, and what passes on unread has no bound.
  if (sends.some((part) => kind.sent[part] === null)) return false;
  // Only events that are read can have an error after a text, and only events one before it.
  if (sends.includes("error") && at === "text" && !kind.isReadByEvent) return false;
  if (sends.includes("error") && at === "begun" && !isEvents(kind)) return false;
  // What passes on unread has no end that comes too early.
  if (kind.gets === "passing" && !isEvents(kind) && script === toHead) return false;
  // Whether an upstream is drained is only asked for a stream.
  return !drains || isStream(kind);
}

/** The ending as it is seen: a routed call has other endings, and events another empty body. */
function seenAs(kind: CallKind, ending: Ending): Ending {
  const { routed, gets } = kind;
  const [complete = ending] = endings;
  if (isRerouted(kind, ending)) return complete;
  // Whoever has left gets no other target.
  if (routed === "second" && gets === "whole" && ending.at === "unsent") {
    return { ...ending, by: "the upstream", error: account };
  }
  if (ending.error === invalid && isEvents(kind) && gets === "whole") {
    return { ...ending, error: broken };
  }
  // An error within a stream keeps the code that the upstream gave it.
  const { errorCode = "upstream_error" } = kind.sent;
  if (ending.by === "the upstream" && ending.script.sends?.[2] && isStream(kind)) {
    return { ...ending, error: ["failed", 502, errorCode] };
  }
  return ending;
}

/** Whether another target answers: after an error that is its upstream's, before our response. */
function isRerouted(kind: CallKind, ending: Ending): boolean {
  const { by, error } = ending;
  if (kind.routed !== "first" || by !== "the upstream" || hasBegun(kind, ending)) return false;
  return error !== refused && error !== stopped;
}

/** Whether the caller has got the status 200 before the call ends. */
function hasBegun(kind: CallKind, { by, at, script }: Ending): boolean {
  const { gets, isReadByEvent, routed, step } = kind;
  if (gets === "whole") return false;
  if (by === "our fault") return step.isLate === true;
  if (gets === "passing") return hasCome(at, isEvents(kind) ? "text" : "begun");
  if (at === "whole" || (isReadByEvent && hasCome(at, "text"))) return true;
  // After two seconds; a routed call waits longer.
  return script.afterMs !== undefined && !routed;
}

/** What a call is charged, by what is known of its response; null: its hold is released. */
function chargeOf(kind: CallKind, ending: Ending): keyof Costs | null {
  const { by, at, script, error } = ending;
  const passed = kind.isReadByEvent && at === "text" ? "count" : null;
  switch (by) {
    case "nobody":
      return error === lost ? null : "report";
    case "its caller":
      // What is not streamed, and what is drained, is read to its end.
      if (!isStream(kind)) return "report";
      if (at === "unsent") return null;
      return script.drains ? "report" : passed ?? "prompt";
    case "the upstream":
      // The caller pays for what it has got.
      if (kind.gets === "passing") return hasBegun(kind, ending) ? "held" : null;
      return isStream(kind) ? passed : null;
    case "our bound":
      return "held";
    case "our deadline":
      if (!hasCome(at, "begun")) return null;
      return passed ?? (isStream(kind) ? "prompt" : "held");
    case "our fault":
      return kind.step.known;
  }
}

/** How the ending is told: the call's outcome, and the error that is counted. */
function toldOf(kind: CallKind, { by, at, script, error }: Ending) {
  const isRead = by === "its caller" && !isStream(kind);
  if (!error || isRead) return { call: "completed", row: "completed 200", code: "", errors: [] };
  const [name, status, code] = error;
  // A stream that is read to its end is no failure.
  const errors = name === "" || (script.drains && at !== "unsent") ? [] : [name];
  if (by === "its caller") return { call: "canceled", row: "canceled 499", code: "", errors };
  return { call: "failed", row: `failed ${status} ${code}`, code: ` ${code}`, errors };
}

/** What the caller gets. */
function gotOf(kind: CallKind, ending: Ending): string {
  const { script, error } = ending;
  if (script.then === "the caller leaves") return "gone";
  const charge = chargeOf(kind, ending);
  const cost = charge ? ` for ${kind.costs[charge]}` : "";
  if (!error) return kind.gets === "whole" ? `200${cost}` : "200";
  if (hasBegun(kind, ending)) {
    return kind.gets === "passing" ? "200, broken off" : "200, then an error";
  }
  return `${error[1]}${cost}${charge ? ", not to be repeated" : ""}`;
}

/** An attempt of a target: whether it is counted as answered, by which error, and its end. */
interface Attempt {
  target: string;
  isAnswered: boolean;
  error: string | null;
  told: "succeed" | "fail" | "end";
}

/** The attempts of a routed call. */
function attemptsOf(kind: CallKind, ending: Ending): Attempt[] {
  const failedBy = (target: string, [error]: Failure): Attempt => {
    return { target, isAnswered: false, error, told: "fail" };
  };
  if (ending.at === "unsent" && isStream(kind)) return [];
  if (isRerouted(kind, ending)) {
    const spare: Attempt = { target: "spare", isAnswered: true, error: null, told: "succeed" };
    return [failedBy("main", ending.error ?? failed), spare];
  }
  if (kind.routed === "first") return [lastAttempt("main", kind, ending)];
  if (ending.at === "unsent") return [failedBy("main", account)];
  // One that has failed for a moment is asked again, up to five attempts in all.
  const { error } = ending;
  const isRepeated = error?.[0] === "failed" && !hasCome(ending.at, "text");
  const before = isRepeated ? Array.from({ length: 3 }, () => failedBy("spare", error)) : [];
  return [failedBy("main", account), ...before, lastAttempt("spare", kind, ending)];
}

function lastAttempt(target: string, kind: CallKind, ending: Ending): Attempt {
  const { by, at, script, error } = ending;
  const isRead = by === "its caller" && (!isStream(kind) || script.drains === true);
  const isWhole = by === "nobody" || isRead;
  const hasOutput = isStream(kind) && hasCome(at, "text");
  const isAnswered = isWhole || hasOutput;
  const name = error && error !== gone && error !== stopped ? error[0] : "";
  const isTargets = name !== "" && error !== refused && error !== tooLarge;
  const told = isWhole ? "succeed" : isTargets ? "fail" : "end";
  return { target, isAnswered, error: name || null, told };
}

/** The rule: what is seen of a call of this kind that ends so. */
function expected(kind: CallKind, ending: Ending): Outcome {
  const seen = seenAs(kind, ending);
  const { by, error } = seen;
  const told = toldOf(kind, seen);
  const charge = chargeOf(kind, seen);
  const attempts = kind.routed ? attemptsOf(kind, ending) : [];
  const errors = [...attempts.slice(0, -1).flatMap(({ error }) => error ?? []), ...told.errors];
  const charges = charge ? [`usage ${kind.costs[charge]}`] : [];
  // A row that names a hold that is gone counts no longer.
  const freeKey = error === lost ? "is free, and has a row" : "is free";
  const status = error && by !== "its caller" ? error[1] : 200;
  const isStored = kind.gets === "whole" || (by === "our deadline" && !hasBegun(kind, seen));
  return {
    caller: gotOf(kind, seen),
    // Whoever finds an expired hold ends it, and tells of it.
    charges: error === lost ? ["expired 0"] : charges,
    held: "0",
    events: [error === lost ? "failed hold_expired" : told.call + told.code],
    rows: [told.row],
    // The metric tells what was sent from what was not.
    counted: {
      calls: [kind.isHit && told.call !== "failed" ? "hit" : told.call],
      errors: errors.sort(),
    },
    ...(kind.routed ? { targets: toldOfTargets(attempts) } : {}),
    ...(kind.hasKey ? { key: charge && isStored ? `has a ${status}` : freeKey } : {}),
    faults: [],
  };
}

function toldOfTargets(attempts: readonly Attempt[]): NonNullable<Outcome["targets"]> {
  return {
    attempts: attempts.flatMap(({ target, isAnswered, error }) => [
      ...(isAnswered ? [`${target} answered`] : []),
      ...(error ? [`${target} ${error}`] : []),
    ]).sort(),
    breakers: attempts.flatMap(({ isAnswered, told }) => [...(isAnswered ? ["answer"] : []), told]),
  };
}

for (const kind of callKinds) {
  Deno.test(`endings: ${kind.name}, however it ends`, async () => {
    const cells = endings.filter((ending) => canOccur(kind, ending));
    const seen = await Promise.all(
      cells.map(({ script }) => endCall(kind, script).catch((error) => String(error))),
    );
    for (const [at, ending] of cells.entries()) {
      assert.deepEqual(seen[at], expected(kind, ending), `${kind.name}: ${ending.name}`);
    }
  });
}
