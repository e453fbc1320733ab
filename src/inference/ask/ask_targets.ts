import { errorFields } from "../../base/errors.ts";
import { readRetryAfter } from "../../base/retry_after.ts";
import {
  isReroutable,
  UpstreamError,
  type UpstreamErrorKind,
  upstreamTimeout,
  upstreamUnreachable,
} from "../../upstreams/errors.ts";
import { randomShare } from "../admit/call_targets.ts";
import type { CallAttempt, FailedAttempt, PaidTarget } from "../attempt.ts";
import type { AdmittedCall, InferenceCall } from "../call.ts";
import { callerDisconnectedEarly } from "../caller_left.ts";
import { noteOutcome } from "./note_outcome.ts";
import { createMeter } from "../meter/create_meter.ts";
import { billOf } from "../meter/bill.ts";
import type { InferenceServices } from "../services.ts";

/** The services that asking the targets of a call needs. */
export type AskServices = Pick<
  InferenceServices,
  "deps" | "prices" | "targetHealth" | "conversations"
>;

/** The most attempts for one call. */
const attemptsMax = 5;

type Placed = Pick<
  AdmittedCall,
  "ref" | "permit" | "rateLimits" | "targets" | "held" | "prompt"
>;

/** Begins a call whose hold is placed with its first attempt. */
export function beginCall(
  services: Pick<InferenceServices, "deps">,
  call: InferenceCall,
  placed: Placed,
): AdmittedCall {
  const { clock } = services.deps;
  const [first, ...others] = placed.targets;
  if (!first) throw new Error("a call has no target");
  let longestMs = totalMsOf(services, first);
  for (const target of others) longestMs = Math.max(longestMs, totalMsOf(services, target));
  const { format } = call;
  return {
    ...call,
    ...placed,
    failed: [],
    untried: others,
    until: clock.elapsed() + longestMs,
    hasBegun: false,
    isEnding: false,
    attempt: newAttempt(services, { format, prompt: placed.prompt }, first),
  };
}

function newAttempt(
  services: Pick<InferenceServices, "deps">,
  call: Pick<AdmittedCall, "format" | "prompt">,
  target: PaidTarget,
): CallAttempt {
  return {
    target,
    meter: createMeter(services, call, target),
    controller: new AbortController(),
    isBridged: false,
    beganAt: services.deps.clock.elapsed(),
    firstTokenMs: null,
    isOver: false,
    stopTimers() {},
  };
}

/**
 * Gets a call's response: from its first target, or from another one after an error for which
 * another may answer. Once all have been asked, those with a passing error are asked again after a
 * pause. All attempts are under the same hold. `ask` makes one attempt. No more is made once a part
 * of a response has been sent to the caller, or the caller has left.
 */
export async function askTargets<T>(
  services: AskServices,
  call: AdmittedCall,
  ask: () => Promise<T>,
): Promise<T> {
  if (!call.isRouted) {
    const answer = await ask();
    call.attempt.firstTokenMs = services.deps.clock.elapsed() - call.attempt.beganAt;
    return answer;
  }
  switchTarget(services, call, [call.attempt.target, ...call.untried]);
  for (;;) {
    try {
      const answer = await ask();
      noteAnswer(services, call);
      return answer;
    } catch (error) {
      noteOutcome(services, call, error);
      if (!isReroutable(error)) throw error;
      const again = call.untried.length === 0;
      const next = again ? passingFailures(services, call, error) : call.untried;
      if (next.length === 0 || !mayReroute(services, call)) throw tellingError(call, error);
      call.telemetry.countError(error);
      call.attempt.stopTimers();
      logFailure(services, call, error);
      call.failed.push(await failureOf(services, call, error));
      if (again) await pause(services, call);
      requireRunning(call);
      if (call.hasBegun) throw tellingError(call, error);
      switchTarget(services, call, next);
    }
  }
}

/** Throws where the whole call was ended meanwhile: its caller has left, or its hold is gone. */
function requireRunning({ attempt: { controller: { signal } }, request }: AdmittedCall): void {
  if (request.signal.aborted) throw callerDisconnectedEarly;
  if (signal.aborted && !isReroutable(signal.reason)) throw signal.reason;
}

/** Whether another attempt may be made, after an error that allows it. */
export function mayReroute(
  { deps: { clock } }: Pick<InferenceServices, "deps">,
  call: AdmittedCall,
): boolean {
  const { failed, until, hasBegun, request } = call;
  return failed.length < attemptsMax - 1 && !hasBegun && clock.elapsed() < until &&
    !request.signal.aborted;
}

/** Errors that soon pass, and after which the upstream has most likely charged nothing. */
const passingKinds: readonly UpstreamErrorKind[] = ["failed", "rate_limited", "unreachable"];
/**
 * The longest pause, in ms, that a target may ask for and still be asked again by the same call.
 */
const retryAfterMaxMs = 2_000;
const pauseMinMs = 150;

/** The targets that are worth asking again, after the last of them has failed with this error. */
function passingFailures(
  { deps: { clock } }: Pick<InferenceServices, "deps">,
  { targets, attempt: { target }, failed }: AdmittedCall,
  error: UpstreamError,
): readonly PaidTarget[] {
  const errors = new Map(failed.map((attempt) => [attempt.target, attempt.error]));
  errors.set(target, error);
  return targets.filter((one) => {
    const last = errors.get(one);
    if (!last || !passingKinds.includes(last.kind)) return false;
    return (readRetryAfter(last.retryAfter ?? "", clock.now()) ?? 0) <= retryAfterMaxMs;
  });
}

/** Waits before targets are asked again: twice as long each time, and as long as one asks for. */
async function pause({ deps }: Pick<InferenceServices, "deps">, call: AdmittedCall): Promise<void> {
  const { clock, randomBytes } = deps;
  const { failed, targets, until, request: { signal } } = call;
  const rounds = Math.ceil(failed.length / targets.length);
  const usualMs = pauseMinMs * 2 ** rounds * (0.5 + randomShare(randomBytes) / 2);
  const askedMs = failed.map(({ error }) => readRetryAfter(error.retryAfter ?? "", clock.now()));
  const asked = askedMs.filter((ms) => ms !== null && ms <= retryAfterMaxMs);
  const ms = Math.min(Math.max(usualMs, ...asked.map(Number)), until - clock.elapsed());
  await clock.sleep(Math.max(1, ms), signal).catch(() => {});
}

/**
 * Begins an attempt of the first of these targets. One whose breaker another call is probing is
 * passed over, if there are others.
 */
function switchTarget(
  services: AskServices,
  call: AdmittedCall,
  among: readonly PaidTarget[],
): void {
  const ready = among.find(({ target }) => services.targetHealth.begin(target));
  const next = ready ?? among[0] ?? call.attempt.target;
  const { target, isOver } = call.attempt;
  // A target that is asked again gets an attempt of its own too.
  if (isOver || next !== target) call.attempt = newAttempt(services, call, next);
  call.untried = among.filter((target) => target !== next);
}

function noteAnswer(
  { targetHealth, conversations, deps: { clock, metrics } }: AskServices,
  call: AdmittedCall,
): void {
  const { attempt, conversation } = call;
  const { target: { target, upstream } } = attempt;
  const ms = clock.elapsed() - attempt.beganAt;
  attempt.firstTokenMs = ms;
  targetHealth.answered(target, ms);
  const meters = metrics.target(upstream.name);
  meters.attempts.answered.add();
  meters.firstToken.observeMs(ms);
  if (conversation !== null) conversations.note(conversation, target);
}

function logFailure(
  { deps }: Pick<InferenceServices, "deps">,
  call: AdmittedCall,
  error: UpstreamError,
): void {
  const { requestId, id: chat, attempt: { target: { upstream, model } } } = call;
  const { kind } = error;
  const about = { requestId, chat, upstream: upstream.name, model, kind };
  deps.log("warn", "attempt_failed", { ...about, ...errorFields(error) });
}

async function failureOf(
  services: AskServices,
  call: AdmittedCall,
  error: UpstreamError,
): Promise<FailedAttempt> {
  const { meter, target } = call.attempt;
  const bill = meter.reported && billOf(services, call, await meter.usage());
  return { target, error, upstreamCost: bill && bill.upstreamCost };
}

/** Kinds of errors that are the owner's to mend, and tell the caller less than others. */
const ownersKinds: readonly UpstreamErrorKind[] = ["refused", "account", "unreachable"];

/** Of the errors of all attempts, the one that tells the caller most. */
function tellingError({ failed }: AdmittedCall, last: UpstreamError): UpstreamError {
  const errors = [last, ...failed.map(({ error }) => error).reverse()];
  return errors.find(({ kind }) => !ownersKinds.includes(kind)) ?? last;
}

function totalMsOf(
  { deps: { config } }: Pick<InferenceServices, "deps">,
  { upstream }: PaidTarget,
): number {
  return upstream.timeouts.totalMs ?? config.upstreamTimeoutMs;
}

/**
 * How long a target may take to its first byte, in ms: the longest silence of a stream where
 * another target is left to be asked, else no bound.
 */
function usualFirstByteMs(
  { deps: { config } }: Pick<InferenceServices, "deps">,
  { untried }: AdmittedCall,
): number | undefined {
  return untried.length > 0 ? config.upstreamIdleMs : undefined;
}

/**
 * Starts the timeouts of the current attempt. The returned function is called when the head of a
 * stream has arrived: only a total time that the project sets goes on after that.
 */
export function startTimers(
  services: Pick<InferenceServices, "deps">,
  call: AdmittedCall,
): () => void {
  const { clock } = services.deps;
  const { attempt } = call;
  const { controller, meter, target: { upstream: { timeouts } } } = attempt;
  const totalMs = totalMsOf(services, attempt.target);
  const leftMs = Math.max(1, Math.min(totalMs, call.until - clock.elapsed()));
  const stopTotal = clock.after(
    leftMs,
    () => controller.abort(upstreamTimeout(`no response within ${leftMs} ms`)),
  );
  const { connectMs, firstByteMs = usualFirstByteMs(services, call) } = timeouts;
  const stopConnect = connectMs === undefined ? null : clock.after(connectMs, () => {
    if (meter.promptSent) return;
    controller.abort(upstreamUnreachable(`no connection within ${connectMs} ms`));
  });
  const stopFirst = firstByteMs === undefined ? null : clock.after(firstByteMs, () => {
    if (meter.bodyBegun) return;
    controller.abort(upstreamTimeout(`no first byte within ${firstByteMs} ms`));
  });
  attempt.stopTimers = () => {
    stopTotal();
    stopConnect?.();
    stopFirst?.();
  };
  return timeouts.totalMs === undefined ? stopTotal : () => {};
}
