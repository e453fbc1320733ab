import { badRequest, notFound } from "../base/errors.ts";
import { canonicalJson, type JsonObject, toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { Bursts, ownBurst, projectBurst } from "../base/bursts.ts";
import type { Clock } from "../base/clock.ts";
import { requireActive } from "../projects/active.ts";
import type { EmitEvents } from "../projects/commit_with_events.ts";
import { keyText } from "../store/batch.ts";
import type { Budget } from "../store/budgets.ts";
import type { Key, Kv } from "../store/kv.ts";
import { accountKey, entryKey, idempotencyKey, refundedKey } from "../store/keys.ts";
import { archivedActivity } from "./archived.ts";
import { accountLocation, type AccountRef, decodeAccount, requireNotClosed } from "./account.ts";
import type { AccountOp, AccountQueue, OpResult } from "./account_queue.ts";
import type { AccountTx } from "./account_tx.ts";
import { entryKinds } from "../base/entry_kinds.ts";
import type { EntryReason } from "../base/entry_reasons.ts";
import { absoluteAmount, type Entry, type KeyIssuer } from "./entry.ts";
import { type EntryOrigin, refusedChargeEvents } from "./events.ts";
import type { RefusalReason } from "../base/refusal_reasons.ts";
import { leftIn, refusalBy } from "./bounds.ts";
import { giveBack } from "./give_back.ts";
import { refundExceedsOriginal, refundOnlyAtStripe } from "./api/refund_errors.ts";
import {
  decodeEntry,
  decodeIdempotency,
  decodeRefunded,
  encodeIdempotency,
  type IdempotencyRecord,
  readEntry,
} from "./store.ts";
import { keyOperation } from "./key_issuer.ts";
import { type BalanceView, viewBalance } from "./api/view.ts";
import { createHash } from "node:crypto";
import { utf8Length } from "../base/utf8.ts";
import { idempotencyKeyReused } from "../base/request.ts";

/**
 * The operations that write one entry each. Throw 422 `idempotency_key_reused`, 403 when archived.
 */
export interface MoneyRecorder {
  deposit(request: MoneyRequest): Promise<MoneyResult>;
  charge(request: MoneyRequest): Promise<MoneyResult>;
  /**
   * Emits the events of a refused charge; `charge` does so itself. From the eleventh refusal of a
   * user and reason in a minute on, and of a project in a second, refusals are only in the summary.
   */
  emitRefused(request: MoneyRequest, refused: RefusedMoney): Promise<void>;
  /** Returns the earlier result of the same request; null when none is recorded under its key. */
  findRecorded(verb: "charge" | "refund", repeated: RepeatedRequest): Promise<Recorded | null>;
  /** Reads an entry of that account, or null. */
  findEntry(ref: AccountRef, activityId: string): Promise<Entry | null>;
  /** Returns how much of an entry can still be refunded. */
  refundableAmount(ref: AccountRef, entry: Entry): Promise<Amount>;
  /**
   * Throws 400 when the amount exceeds what is left of the original, and for what a person paid
   * into a wallet, unless it was paid back outside; 404 for another user's entry.
   */
  refund(refund: RefundRequest): Promise<MoneyResult>;
  /** Reverses a refund of a deposit, for example when the refund failed at the payment provider. */
  reinstate(giving: Reinstatement): Promise<MoneyResult>;
}

/** Creates deposit, charge and refund over the account queue. */
export function createMoneyRecorder(
  { kv, clock }: { kv: Kv; clock: Pick<Clock, "elapsed"> },
  queue: AccountQueue,
  emit: EmitEvents,
): MoneyRecorder {
  const users = new Bursts(clock, ownBurst);
  const projects = new Bursts(clock, projectBurst);

  async function recordEntry(
    operationName: string,
    request: MoneyRequest | RefundRequest,
    op: MoneyOp,
  ) {
    const outcome = await queue.run(request.ref, idempotent(operationName, request, op));
    return "kind" in outcome ? outcome : await replayEntry(kv, outcome, request.ref.projectId);
  }

  async function emitRefused(
    request: MoneyRequest,
    { kind, balance: { available } }: RefusedMoney,
  ) {
    const { ref, origin: { trigger } } = request;
    const isOne = users.isFirst(keyText([ref.projectId, ref.user, kind]));
    if (!isOne || !projects.isFirst(ref.projectId)) return;
    await emit(ref.projectId, refusedChargeEvents(ref, kind, { ...request, trigger, available }));
  }

  return {
    findRecorded: (verb, repeated) => findRecorded(kv, verb, repeated),
    async refundableAmount({ projectId }, entry) {
      const { value } = await kv.get(refundedKey(projectId, entry.id));
      return leftToRefund(entry, value);
    },
    findEntry: (ref, activityId) => readEntry(kv, accountLocation(ref).owner, activityId),
    deposit: (request) =>
      recordEntry("deposit", request, {
        fields: requestFields(request),
        reads: request.reads ?? [],
        apply: (tx, details) => {
          if (!request.paidExternally) requireActive(tx.snapshot.project);
          const entry = { kind: "deposit" as const, ...details };
          const made = tx.credit(request.amount, entry, request.origin);
          request.alongside?.(tx, made);
          return recordedResult(made);
        },
      }),
    async charge(request) {
      const result = await recordEntry("charge", request, {
        fields: requestFields(request),
        reads: [],
        apply: (tx, details) => {
          requireActive(tx.snapshot.project);
          const { amount, byOperator = false, budgets = [] } = request;
          const refusal = refusalOf(tx, request);
          if (refusal) return { value: refusedResult(tx, refusal), refused: true };
          const names = budgets.map(({ name }) => name);
          const entry = { kind: "charge" as const, ...details, budgets: names };
          const unlimited = byOperator ? amount : zero;
          const made = tx.debit(amount, entry, request.origin, { unlimited, budgets });
          request.alongside?.(tx, made);
          return recordedResult(made);
        },
      });
      if ("balance" in result) await emitRefused(request, result);
      return result;
    },
    emitRefused,
    refund: (refund) => recordEntry("refund", refund, refundOp(refund)),
    reinstate: (giving) => recordEntry("deposit", giving, reinstateOp(giving)),
  };
}

function refundOp(refunding: RefundRequest): MoneyOp {
  const { ref, amount, original, origin, paidExternally = false, reads = [], alongside } =
    refunding;
  const total = refundedKey(ref.projectId, original.id);
  const originalKey = entryKey(accountLocation(ref).owner, original.id);
  // While a user is being erased this account is closed, so it is read even when a wallet's account
  // is written.
  const own = ref.wallet && !paidExternally ? accountKey(ref.projectId, ref.user) : null;
  return {
    fields: requestFields({ activityId: original.id, amount }),
    reads: [total, originalKey, ...reads, ...(own ? [own] : [])],
    apply(tx, details) {
      if (own) requireNotClosed(decodeAccount(tx.row(own)));
      // The user may have been erased since the entry was read. For refunds made at Stripe the
      // caller checks that.
      const row = tx.row(originalKey);
      const now = row && decodeEntry(row);
      if (now === null || now.kind === "carried") throw archivedActivity();
      if (!paidExternally && now.user !== ref.user) throw notFound("activity");
      const projectId = original.projectId ?? ref.projectId;
      if (original.user !== ref.user || projectId !== ref.projectId) throw notFound("activity");
      if (original.kind === "refund") {
        throw badRequest("activityId", "A refund cannot be refunded.", "not_refundable");
      }
      if (original.kind === "deposit" && ref.wallet && !paidExternally) throw refundOnlyAtStripe();
      const left = leftToRefund(original, tx.row(total));
      const refund = amount ?? left;
      if (refund > left || refund === 0n) throw refundExceedsOriginal(left);
      tx.put(total, toBytes(formatAmount(fromDecimal(absoluteAmount(original)) - left + refund)));
      const entry = { kind: "refund" as const, refundedActivityId: original.id, ...details };
      const made = entryKinds[original.kind].direction === "debit"
        ? giveBack(tx, refund, { entry, origin, original })
        : tx.debit(refund, entry, origin, { unlimited: refund });
      alongside?.(tx, made);
      return recordedResult(made);
    },
  };
}

function leftToRefund(original: Entry, refunded: Uint8Array | null): Amount {
  const whole = fromDecimal(absoluteAmount(original));
  return toAmount(whole - (refunded ? decodeRefunded(refunded) : zero));
}

function recordedResult(entry: Entry): OpResult<MoneyResult> {
  return { value: { kind: "recorded", entry } };
}

/**
 * Returns why a charge is refused; null where it is allowed. Throws the error of a budget that
 * leaves too little.
 */
function refusalOf(
  tx: AccountTx,
  { amount, byOperator = false, budgets = [] }: MoneyRequest,
): RefusalReason | null {
  if (!tx.spending.authorized) return "authorization_required";
  const all = tx.bounds(budgets);
  const bounds = byOperator ? all.filter(({ forCallersOnly }) => !forCallersOnly) : all;
  if (amount <= leftIn(bounds)) return null;
  return refusalBy(bounds, (most) => amount <= most);
}

function refusedResult(tx: AccountTx, kind: RefusalReason): MoneyResult {
  const { balance, held } = tx.account;
  const { currency } = tx.snapshot.project;
  return { kind, balance: viewBalance(balance, held, currency) };
}

/** The reversal of a refund of a deposit: at most what was taken back. */
export interface Reinstatement extends RefundRequest {
  amount: Amount;
  /** The part of the refund's shortfall that is no longer due: at most all of it. */
  recovered: Amount;
}

/** Returns how a reversal is recorded; its amount becomes refundable again. */
function reinstateOp(giving: Reinstatement): MoneyOp {
  const { ref, amount, recovered, original, origin, reads = [], alongside } = giving;
  const total = refundedKey(ref.projectId, original.id);
  return {
    fields: requestFields({ activityId: original.id, amount }),
    reads: [total, ...reads],
    apply(tx, details) {
      const row = tx.row(total);
      const refunded = row ? decodeRefunded(row) : zero;
      const entry = { kind: "deposit" as const, refundedActivityId: original.id, ...details };
      const made = tx.credit(amount, entry, origin, recovered);
      // First, since the caller may find there that another call has reversed the refund.
      alongside?.(tx, made);
      const left = refunded - amount - recovered;
      if (left < 0n) throw new Error(`more of ${original.id} is reinstated than was refunded`);
      tx.put(total, toBytes(formatAmount(left)));
      return { value: { kind: "recorded", entry: made } };
    },
  };
}

/** Whether the entry reverses a refund. */
export function isReinstatement({ kind, refundedActivityId }: Entry): boolean {
  return kind === "deposit" && refundedActivityId !== null;
}

/** Throws 400 `not_refundable` for a reversal: the original deposit has to be refunded instead. */
export function requireNotReinstatement(entry: Entry): void {
  if (!isReinstatement(entry)) return;
  const message =
    `This reverses a refund of ${entry.refundedActivityId}: refund that activity instead.`;
  throw badRequest("activityId", message, "not_refundable");
}

/** A request that may have been made before, when another wallet paid. */
interface RepeatedRequest extends Pick<MoneyRequest, "metadata" | "key"> {
  projectId: string;
  user: string;
  amount: Amount | null;
  reason?: EntryReason | undefined;
  /** For a refund: the refunded activity. */
  activityId?: string;
}

/** The details of a request that its entry keeps. */
type EntryDetails =
  & Pick<Entry, "idempotencyKey" | "metadata">
  & Partial<Pick<Entry, "keyIssuer" | "reason">>;

/** An operation as it is recorded. */
interface MoneyOp {
  /** The fields that identify a repetition of the request, besides user and metadata. */
  fields: Record<string, string | null>;
  reads: AccountOp<unknown>["reads"];
  apply(tx: AccountTx, details: EntryDetails): OpResult<MoneyResult>;
}

/** Looks up the idempotency key first; returns the recorded entry if there is one. */
function idempotent(
  name: string,
  request: MoneyRequest | RefundRequest,
  op: MoneyOp,
): AccountOp<MoneyResult | IdempotencyRecord> {
  const { ref, key, metadata, issuer, reason } = request;
  const budgets = "budgets" in request ? request.budgets ?? [] : [];
  const operation = keyOperation(name, issuer);
  const record = key === null ? null : idempotencyKey(ref.projectId, operation, key);
  const fingerprint = key === null ? "" : fingerprintOf({ user: ref.user, metadata, ...op.fields });
  return {
    reads: op.reads,
    uniqueKey: record,
    bringsBalance: reason === "opening",
    budgets,
    // The entry and two events each carry the metadata.
    estimatedBytes: 2048 + (metadata ? 3 * utf8Length(JSON.stringify(metadata)) : 0),
    apply(tx) {
      const before = record && tx.row(record);
      if (before) {
        const known = decodeIdempotency(before);
        requireSameFingerprint(known, fingerprint);
        return { value: known };
      }
      const details = {
        ...{ idempotencyKey: key, metadata },
        ...(issuer && { keyIssuer: issuer }),
        ...(reason && { reason }),
      };
      const result = op.apply(tx, details);
      if (record && result.value.kind === "recorded") {
        const activityId = result.value.entry.id;
        const owner = ref.wallet ? { owner: accountLocation(ref).owner } : {};
        tx.put(record, encodeIdempotency({ activityId, fingerprint, ...owner }));
      }
      return result;
    },
  };
}

function requireSameFingerprint(known: IdempotencyRecord, fingerprint: string): void {
  if (known.fingerprint !== fingerprint) throw idempotencyKeyReused();
}

/** Returns the fields of a request that must be equal when it is repeated. */
function requestFields(
  { amount, activityId, reason }: Pick<RepeatedRequest, "amount" | "activityId" | "reason">,
): MoneyOp["fields"] {
  const of = activityId === undefined ? {} : { activityId };
  const why = reason === undefined ? {} : { reason };
  return { ...of, ...why, amount: amount === null ? null : formatAmount(amount) };
}

function fingerprintOf(request: Record<string, unknown>): string {
  return createHash("sha256").update(canonicalJson(request)).digest("base64url");
}

/** Returns the entry that a key stands for. */
async function replayEntry(
  kv: Kv,
  { owner, activityId }: IdempotencyRecord,
  projectId: string,
): Promise<Recorded> {
  const entry = await readEntry(kv, owner ?? projectId, activityId);
  if (!entry) throw new Error(`no entry ${activityId} for its idempotency key`);
  return { kind: "replayed", entry };
}

/** Returns the earlier result of the same request, also where no one pays any more; or null. */
async function findRecorded(
  kv: Kv,
  verb: string,
  { projectId, user, key, metadata, ...fields }: RepeatedRequest,
): Promise<Recorded | null> {
  if (key === null) return null;
  const { value } = await kv.get(idempotencyKey(projectId, verb, key));
  if (!value) return null;
  const record = decodeIdempotency(value);
  requireSameFingerprint(record, fingerprintOf({ user, metadata, ...requestFields(fields) }));
  return await replayEntry(kv, record, projectId);
}

/** A deposit or a charge to record. */
interface MoneyRequest {
  ref: AccountRef;
  amount: Amount;
  metadata: JsonObject | null;
  /** The caller's idempotency key, or null. */
  key: string | null;
  /** Set where this service chose the key: it is stored where no caller's key can be. */
  issuer?: KeyIssuer;
  origin: EntryOrigin;
  /** Why the money moves, where the kind of the entry does not say it. */
  reason?: EntryReason | undefined;
  /** Rows to write with the entry. */
  alongside?: (tx: AccountTx, entry: Entry) => void;
  /** Of a charge: limits that several users share, toward which it counts. */
  budgets?: readonly Budget[];
  /** Rows that `alongside` reads: the write checks them. */
  reads?: readonly Key[];
  /** Whether an operator books the charge: the project's limits for the user do not apply. */
  byOperator?: boolean;
  /**
   * Whether the money was paid, or paid back, outside. It is recorded even where the project takes
   * no new money.
   */
  paidExternally?: boolean;
}

/** A refund to record; without an amount, of the remaining amount. */
export interface RefundRequest extends Omit<MoneyRequest, "amount"> {
  amount: Amount | null;
  original: Entry;
}

/** Why the money was refused, and the balance at that time. */
interface RefusedMoney {
  kind: RefusalReason;
  balance: BalanceView;
}

/** The outcome: recorded now, recorded before under this key, or refused. */
type MoneyResult = Recorded | RefusedMoney;

/** A recorded entry; `replayed`: by an earlier request with the same key. */
export interface Recorded {
  kind: "recorded" | "replayed";
  entry: Entry;
}
