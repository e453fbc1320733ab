import { type ApiError, badRequest, notFound } from "../base/errors.ts";
import { toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { requireActive } from "../projects/active.ts";
import type { Announce } from "../projects/announce.ts";
import type { Kv } from "../store/kv.ts";
import { accountKey, entryKey, refundedKey } from "../store/keys.ts";
import { type AccountRef, decodeAccount, placeOf, requireOpen } from "./account.ts";
import type { AccountQueue } from "./account_queue.ts";
import type { Verdict } from "./waiting.ts";
import type { Draft } from "./draft.ts";
import { amountOf, type Entry, type EntryKind } from "./entry.ts";
import { refusedCharge } from "./events.ts";
import { giveBackBook, type GivingBack } from "./give_back.ts";
import { type Book, fieldsOf, findEarlier, keyed, type Repeated, replay } from "./keyed.ts";
import { type Obstacle, obstacleOf } from "./obstacle.ts";
import type { Booked, NotPosted, Posted, Posting, Refund } from "./posting.ts";
import { decodeEntry, decodeRefunded, readEntry } from "./store.ts";
import { viewBalance } from "./view.ts";

/** The verbs that post one entry each. Throw 422 `idempotency_key_reused`, 403 when archived. */
export interface Post {
  deposit(posting: Posting): Promise<Posted>;
  charge(posting: Posting): Promise<Posted>;
  /** Tells those who listen of a charge that was refused; `charge` does so of its own. */
  tellRefused(posting: Posting, refused: NotPosted): Promise<void>;
  /** What the same request was answered by before; null when nothing is booked under its key. */
  earlier(verb: "charge" | "refund", repeated: Repeated): Promise<Booked | null>;
  /** An entry of that account, or null. */
  find(ref: AccountRef, activityId: string): Promise<Entry | null>;
  /** How much of an entry can still be refunded. */
  refundable(ref: AccountRef, entry: Entry): Promise<Amount>;
  /**
   * Throws 400 when it would exceed what is left of the original, and for what a person paid into a
   * wallet, unless it is paid back where it was paid; 404 for another's entry.
   */
  refund(refund: Refund): Promise<Posted>;
  /** Books what is given back of a deposit that was refunded, for who knows that it was in vain. */
  giveBack(giving: GivingBack): Promise<Posted>;
}

/** Deposit, charge and refund over the account queue. */
export function createPost(kv: Kv, queue: AccountQueue, announce: Announce): Post {
  async function post(operationName: string, posting: Posting | Refund, book: Book) {
    const outcome = await queue.run(posting.ref, keyed(operationName, posting, book));
    return "kind" in outcome ? outcome : await replay(kv, outcome, posting.ref.projectId);
  }

  async function tellRefused(posting: Posting, { kind, balance: { available } }: NotPosted) {
    const { ref, origin: { trigger } } = posting;
    await announce(ref.projectId, refusedCharge(ref, kind, { ...posting, trigger, available }));
  }

  return {
    earlier: (verb, repeated) => findEarlier(kv, verb, repeated),
    async refundable({ projectId }, entry) {
      const { value } = await kv.get(refundedKey(projectId, entry.id));
      return leftOf(entry, value);
    },
    find: (ref, activityId) => readEntry(kv, placeOf(ref).owner, activityId),
    deposit: (posting) =>
      post("deposit", posting, {
        fields: fieldsOf(posting),
        reads: posting.reads ?? [],
        apply: (draft, details) => {
          if (!posting.paid) requireActive(draft.snapshot.project);
          const entry = { kind: "deposit" as const, ...details };
          const made = draft.credit(posting.amount, entry, posting.origin);
          posting.alongside?.(draft, made);
          return booked(made);
        },
      }),
    async charge(posting) {
      const posted = await post("charge", posting, {
        fields: fieldsOf(posting),
        reads: [],
        apply: (draft, details) => {
          requireActive(draft.snapshot.project);
          const refusal = refusalOf(draft, posting.amount);
          if (refusal) return { value: short(draft, refusal), refused: true };
          const entry = { kind: "charge" as const, ...details };
          const made = draft.debit(posting.amount, entry, posting.origin);
          posting.alongside?.(draft, made);
          return booked(made);
        },
      });
      if ("balance" in posted) await tellRefused(posting, posted);
      return posted;
    },
    tellRefused,
    refund: (refund) => post("refund", refund, refundBook(refund)),
    giveBack: (giving) => post("deposit", giving, giveBackBook(giving)),
  };
}

const creditKinds: readonly EntryKind[] = ["charge", "usage", "expired"];

function refundBook(refunding: Refund): Book {
  const { ref, amount, original, origin, paid = false, reads = [], alongside } = refunding;
  const total = refundedKey(ref.projectId, original.id);
  const originalKey = entryKey(placeOf(ref).owner, original.id);
  // Whoever is being forgotten has it closed, also where a wallet's account is written to.
  const own = ref.wallet && !paid ? accountKey(ref.projectId, ref.user) : null;
  return {
    fields: fieldsOf({ activityId: original.id, amount }),
    reads: [total, originalKey, ...reads, ...(own ? [own] : [])],
    apply(draft, details) {
      if (own) requireOpen(decodeAccount(draft.row(own)));
      // Its user may have been forgotten since it was read; who pays it back for Stripe sees to that.
      const row = draft.row(originalKey);
      if (!paid && row && decodeEntry(row).user !== ref.user) throw notFound("activity");
      const projectId = original.projectId ?? ref.projectId;
      if (original.user !== ref.user || projectId !== ref.projectId) throw notFound("activity");
      if (original.kind === "refund") {
        throw badRequest("activityId", "A refund cannot be refunded.", "not_refundable");
      }
      if (original.kind === "deposit" && ref.wallet && !paid) throw paidBackAtStripe();
      const left = leftOf(original, draft.row(total));
      const refund = amount ?? left;
      if (refund > left || refund === 0n) throw exceeds(left);
      draft.put(total, toBytes(formatAmount(fromDecimal(amountOf(original)) - left + refund)));
      const entry = { kind: "refund" as const, refundedActivityId: original.id, ...details };
      const made = creditKinds.includes(original.kind)
        ? draft.credit(refund, entry, origin)
        : draft.debit(refund, entry, origin);
      alongside?.(draft, made);
      return booked(made);
    },
  };
}

function leftOf(original: Entry, refunded: Uint8Array | null): Amount {
  const whole = fromDecimal(amountOf(original));
  return toAmount(whole - (refunded ? decodeRefunded(refunded) : zero));
}

/** A wallet is its owner's: no project gives to it, and none takes what was paid in. */
function paidBackAtStripe(): ApiError {
  return badRequest(
    null,
    "In the shared mode what was paid into a wallet is paid back at Stripe, by whoever runs this " +
      "server.",
    "mode_conflict",
  );
}

function exceeds(left: Amount): ApiError {
  return badRequest(
    "amount",
    `Of this activity, ${formatAmount(left)} is left to refund.`,
    "refund_exceeds_original",
  );
}

function booked(entry: Entry): Verdict<Posted> {
  return { value: { kind: "booked", entry } };
}

function refusalOf(draft: Draft, amount: Amount): Obstacle | null {
  if (!draft.spending.authorized) return "authorization_required";
  if (amount <= draft.spendable) return null;
  return obstacleOf(draft, (most) => amount <= most);
}

function short(draft: Draft, kind: Obstacle): Posted {
  const { balance, held } = draft.account;
  const { currency } = draft.snapshot.project;
  return { kind, balance: viewBalance(balance, held, currency) };
}
