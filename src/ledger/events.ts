import { storedTotal } from "../base/token_classes.ts";
import { formatAmount } from "../base/money.ts";
import type { EventData } from "../events/catalogue.ts";
import { bySystem, type NewEvent, newEvent, type Trigger } from "../events/event.ts";
import type { JsonObject } from "../base/json.ts";
import type { Project } from "../projects/schema.ts";
import { type RefusalReason, refusalReasons } from "../base/refusal_reasons.ts";
import { type AccountRef, walletUserOf } from "./account.ts";
import { absoluteAmount, type Entry, type EntryActor, entryReason } from "./entry.ts";

/** The cause of an entry, and for a deposit the source of the money. */
export interface EntryOrigin {
  trigger: Trigger;
  /** Of a deposit: the payment source. */
  source?: string;
  /** Who caused the entry, where the trigger tells of somebody else. */
  actor?: EntryActor;
  /** Emits no events: of opening balances, of which nobody has to hear. */
  isSilent?: boolean;
  /** Further events to emit with the entry. */
  extraEvents?: (entry: Entry) => NewEvent[];
}

/** Returns the events of an entry, to be written with it. */
export function entryEvents(entry: Entry, about: EntryContext, origin: EntryOrigin): NewEvent[] {
  if (origin.isSilent) return [];
  return [...eventsOfKind(entry, about, origin), ...origin.extraEvents?.(entry) ?? []];
}

/** Returns who caused an entry. */
export function actorOfOrigin({ trigger, actor }: EntryOrigin): EntryActor {
  if (actor) return actor;
  const { source, actorType, actorId: id } = trigger;
  switch (actorType) {
    case "end-user":
      return { type: "user", id };
    case "system":
      return source === "checkout"
        ? { type: "stripe", id: "stripe" }
        : { type: "system", id: "system" };
    case "paywall-owner":
      return { type: source === "api" && id.startsWith("key_") ? "key" : "operator", id };
  }
}

/** The account and the project of an entry, and the number of the change of the user's balance. */
interface EntryContext {
  ref: AccountRef;
  project: Project;
  balanceVersion: number;
}

function eventsOfKind(
  entry: Entry,
  { ref, project: { currency }, balanceVersion }: EntryContext,
  origin: EntryOrigin,
): NewEvent[] {
  const { trigger } = origin;
  const walletUserId = walletUserOf(ref);
  const { user, id: activityId, metadata } = entry;
  const of = (type: "balance" | "usage") => ({
    trigger,
    subject: { type, id: activityId, externalId: user },
    metadata,
  });
  const who = { walletUserId, externalUserId: user };
  const reason = entryReason(entry);
  const moved = {
    ...who,
    ...{ amount: absoluteAmount(entry), currency, activityId, balanceVersion, reason },
  };
  switch (entry.kind) {
    case "deposit": {
      const data = { ...moved, source: origin.source ?? trigger.source };
      return [newEvent("balance.deposit.created", of("balance"), data)];
    }
    case "charge":
      return chargeEvents(of("balance"), moved);
    case "refund": {
      const direction = entry.delta.startsWith("-") ? "debit" as const : "credit" as const;
      const data = { ...moved, direction, refundedActivityId: entry.refundedActivityId ?? "" };
      return [newEvent("balance.refund.created", of("balance"), data)];
    }
    case "usage":
    case "expired":
      return [
        newEvent("usage.charge.created", of("usage"), {
          ...usageData(entry, walletUserId),
          balanceVersion,
        }),
      ];
    case "trial": {
      const data = { walletUserId, credits: absoluteAmount(entry), activityId, balanceVersion };
      return [newEvent("balance.trial.granted", of("balance"), data)];
    }
    // It belongs to no project, which could be told.
    case "transfer":
    // No money moves when entries are archived.
    case "carried":
      return [];
  }
}

/** A charge is settled as soon as it is taken. */
function chargeEvents(
  about: Parameters<typeof newEvent>[1],
  charged: EventData<"balance.charge.created">,
): NewEvent[] {
  const { walletUserId, activityId, balanceVersion } = charged;
  return [
    newEvent("balance.charge.created", about, charged),
    newEvent("balance.charge.completed", about, {
      ...{ walletUserId, activityId, balanceVersion },
      settlementReference: activityId,
    }),
  ];
}

function usageData(entry: Entry, walletUserId: string) {
  const { usage } = entry;
  return {
    walletUserId,
    activityId: entry.id,
    model: usage?.model ?? null,
    promptTokens: storedTotal(usage ?? {}, "input"),
    completionTokens: storedTotal(usage ?? {}, "output"),
    cost: absoluteAmount(entry),
  };
}

/**
 * Returns the event of a call whose process died: its hold expired, and nothing more is known of
 * it.
 */
export function expiredHoldEvent(ref: AccountRef, requestId: string): NewEvent {
  const subject = { type: "request" as const, id: requestId, externalId: ref.user };
  return newEvent("proxy.request.failed", { trigger: bySystem, subject }, {
    requestId,
    walletUserId: walletUserOf(ref),
    model: null,
    errorCode: "hold_expired",
  });
}

/** Returns the events of a refused charge; for lack of money that includes `balance.depleted`. */
export function refusedChargeEvents(
  ref: AccountRef,
  reason: RefusalReason,
  { trigger, amount, available, metadata }: {
    trigger: Trigger;
    amount: bigint;
    available: string;
    metadata: JsonObject | null;
  },
): NewEvent[] {
  const { user } = ref;
  const subject = { type: "balance" as const, id: user, externalId: user };
  const requestedAmount = formatAmount(amount);
  const nobodys = reason === "authorization_required" && !ref.wallet;
  const failed = newEvent("balance.charge.failed", { trigger, subject, metadata }, {
    walletUserId: nobodys ? null : walletUserOf(ref),
    activityId: null,
    amount: requestedAmount,
    errorCode: refusalReasons[reason].code,
  });
  if (reason !== "insufficient_funds") return [failed];
  return [failed, balanceDepletedEvent(ref, { trigger, requestedAmount, available, metadata })];
}

/**
 * Returns the event of a user whose balance is too small; the amount is null where none was named.
 */
export function balanceDepletedEvent(
  ref: AccountRef,
  { trigger, requestedAmount, available, metadata = null }: {
    trigger: Trigger;
    requestedAmount: string | null;
    available: string;
    metadata?: JsonObject | null;
  },
): NewEvent {
  const { user } = ref;
  const subject = { type: "balance" as const, id: user, externalId: user };
  return newEvent("balance.depleted", { trigger, subject, metadata }, {
    walletUserId: walletUserOf(ref),
    requestedAmount,
    availableBalance: available,
  });
}
