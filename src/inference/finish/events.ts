import { formatAmount } from "../../base/money.ts";
import { type AccountRef, walletUserOf } from "../../ledger/account.ts";
import { type NewEvent, newEvent, type Trigger } from "../../events/event.ts";

import type { FailedAttempt, PaidTarget } from "../attempt.ts";

/** How a call ended, as its events report it. */
export type CallEnding =
  | { kind: "completed" | "canceled" }
  | {
    kind: "failed";
    errorCode: string;
    /** The status that the response had, or would have had if it had not begun. */
    status: number;
  };

/** The part of a call that its events report. */
interface CallFacts {
  /** Our own id of the call. */
  id: string;
  user: string;
  /** The account that pays; null where none is known. */
  ref: AccountRef | null;
  input: { model: string | null; stream: boolean };
}

/** The end user as the trigger of an event. */
export function userTrigger(user: string): Trigger {
  return { source: "proxy", actorType: "end-user", actorId: user };
}

function aboutRequest({ id, user }: CallFacts) {
  return {
    trigger: userTrigger(user),
    subject: { type: "request" as const, id, externalId: user },
  };
}

/** A call that has a hold. */
interface PaidCall extends CallFacts {
  ref: AccountRef;
}

function payerOf({ ref }: CallFacts): string | null {
  return ref && walletUserOf(ref);
}

/** The events of an admitted call. A stream's charge follows at its end. */
export function callStartedEvents(call: PaidCall): NewEvent[] {
  const { id: requestId, input: { model, stream } } = call;
  const walletUserId = walletUserOf(call.ref);
  const about = aboutRequest(call);
  const started = newEvent("proxy.request.started", about, { requestId, walletUserId, model });
  if (!stream) return [started];
  return [
    started,
    newEvent("usage.charge.deferred", about, { deferredRequestId: requestId, model }),
  ];
}

/** A call that has ended, with its attempts. */
interface EndedCall extends PaidCall {
  isRouted: boolean;
  attempt: { target: PaidTarget };
  failed: readonly FailedAttempt[];
}

/** The events of a call that has ended: each change of its target, and the ending. */
export function callEndedEvents(call: EndedCall, ending: CallEnding): NewEvent[] {
  if (!call.isRouted) return [callEndedEvent(call, ending)];
  const { id: requestId, input: { model }, failed } = call;
  const walletUserId = walletUserOf(call.ref);
  const about = aboutRequest(call);
  const rerouted = failed.map(({ target, error }, at) => {
    const next = failed[at + 1]?.target ?? call.attempt.target;
    const data = {
      requestId,
      walletUserId,
      model,
      from: target.upstream.name,
      fromModel: target.model,
      to: next.upstream.name,
      toModel: next.model,
      reason: error.kind,
    };
    return newEvent("proxy.request.rerouted", about, data);
  });
  return [...rerouted, callEndedEvent(call, ending)];
}

function callEndedEvent(call: EndedCall, ending: CallEnding): NewEvent {
  const { id: requestId, input: { model } } = call;
  const walletUserId = walletUserOf(call.ref);
  const about = aboutRequest(call);
  const data = { requestId, walletUserId, model };
  switch (ending.kind) {
    case "completed":
      return newEvent("proxy.request.completed", about, data);
    case "canceled":
      return newEvent("proxy.request.canceled", about, data);
    case "failed":
      return newEvent("proxy.request.failed", about, {
        ...data,
        errorCode: ending.errorCode,
        ...(call.isRouted ? { attempts: attemptsOf(call, ending) } : {}),
      });
  }
}

function attemptsOf(
  { attempt: { target }, failed }: EndedCall,
  { errorCode }: { errorCode: string },
) {
  const last = { target, reason: errorCode, upstreamCost: null };
  const before = failed.map(({ error: { kind: reason }, ...rest }) => ({ ...rest, reason }));
  return [...before, last].map(({ target: { upstream, model }, reason, upstreamCost }) => ({
    upstream: upstream.name,
    model,
    reason,
    upstreamCost: upstreamCost && formatAmount(upstreamCost),
  }));
}

/** The reason of refused calls, and how many there were. */
interface Refused {
  reason: string;
  count: number;
}

/** The event of calls that got the paywall; `call` is the last of them. */
export function callPaywalledEvent(call: CallFacts, { reason, count }: Refused): NewEvent {
  const { id: requestId } = call;
  const walletUserId = payerOf(call);
  const data = { walletUserId, reason, requestId, count };
  return newEvent("request.blocked", aboutRequest(call), data);
}

/** The event of a user or a key that exceeded a rate limit; `date` is now, as ISO 8601. */
export function rateLimitedEvent(
  call: CallFacts,
  { limit, date, count }: { limit: string; date: string; count: number },
) {
  const { user, input: { model } } = call;
  const subject = { type: "usage" as const, id: call.id, externalId: user };
  const data = { limit, date, model, walletUserId: payerOf(call), count };
  return newEvent("usage.rate.limited", { trigger: userTrigger(user), subject }, data);
}

/** The event of calls that a limit or a policy refused; `call` is the last of them. */
export function callBlockedEvent(call: CallFacts, { reason, count }: Refused): NewEvent {
  const { id: requestId } = call;
  const walletUserId = payerOf(call);
  const data = { requestId, walletUserId, reason, count };
  return newEvent("proxy.request.blocked", aboutRequest(call), data);
}
