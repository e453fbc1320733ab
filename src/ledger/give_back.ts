import { badRequest } from "../base/errors.ts";
import { toBytes } from "../base/json.ts";
import { type Amount, formatAmount, zero } from "../base/money.ts";
import { refundedKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { AccountQueue } from "./account_queue.ts";
import type { Entry } from "./entry.ts";
import { type Book, fieldsOf, keyed, replay } from "./keyed.ts";
import type { Posted, Refund } from "./posting.ts";
import { decodeRefunded } from "./store.ts";

/** What was taken back of a deposit and is given back: no more than was taken. */
export interface GivingBack extends Refund {
  amount: Amount;
  /** What was short when it was taken back, and is due no more: no more than was short. */
  recovered: Amount;
}

/** Books what is given back of a deposit that was refunded; that much can be refunded once more. */
export type GiveBack = (giving: GivingBack) => Promise<Posted>;

/** Giving back over the account queue: for who knows that money was taken back in vain. */
export function createGiveBack(kv: Kv, queue: AccountQueue): GiveBack {
  return async (giving) => {
    const operation = keyed("deposit", giving, giveBackBook(giving));
    const outcome = await queue.run(giving.ref, operation);
    return "kind" in outcome ? outcome : await replay(kv, outcome, giving.ref.projectId);
  };
}

function giveBackBook(giving: GivingBack): Book {
  const { ref, amount, recovered, original, origin, reads = [], alongside } = giving;
  const total = refundedKey(ref.projectId, original.id);
  return {
    fields: fieldsOf({ activityId: original.id, amount }),
    reads: [total, ...reads],
    apply(draft, details) {
      const row = draft.row(total);
      const refunded = row ? decodeRefunded(row) : zero;
      const entry = { kind: "deposit" as const, refundedActivityId: original.id, ...details };
      const made = draft.credit(amount, entry, origin, recovered);
      // First, since who asked may see there that it has been given back meanwhile.
      alongside?.(draft, made);
      const left = refunded - amount - recovered;
      if (left < 0n) throw new Error(`more is given back of ${original.id} than was taken`);
      draft.put(total, toBytes(formatAmount(left)));
      return { value: { kind: "booked", entry: made } };
    },
  };
}

/** Whether it gives back what was taken back of another entry. */
export function isGivenBack({ kind, refundedActivityId }: Entry): boolean {
  return kind === "deposit" && refundedActivityId !== null;
}

/** Throws 400 `not_refundable` for what was given back: the deposit that was paid is refunded. */
export function requirePaid(entry: Entry): void {
  if (!isGivenBack(entry)) return;
  const message = `This gives back what was taken of ${entry.refundedActivityId}: refund that.`;
  throw badRequest("activityId", message, "not_refundable");
}
