import { badRequest } from "../base/errors.ts";
import { toBytes } from "../base/json.ts";
import { type Amount, formatAmount, zero } from "../base/money.ts";
import { refundedKey } from "../store/keys.ts";
import type { Entry } from "./entry.ts";
import { type Book, fieldsOf } from "./keyed.ts";
import type { Refund } from "./posting.ts";
import { decodeRefunded } from "./store.ts";

/** What was taken back of a deposit and is given back: no more than was taken. */
export interface GivingBack extends Refund {
  amount: Amount;
  /** What was short when it was taken back, and is due no more: no more than was short. */
  recovered: Amount;
}

/** How what is given back is booked; that much can be refunded once more. */
export function giveBackBook(giving: GivingBack): Book {
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
