import { z } from "zod";
import { decimal } from "../base/fields.ts";
import { fromBytes } from "../base/json.ts";
import { accountLocation } from "../ledger/account.ts";
import type { Entry } from "../ledger/entry.ts";
import { isReinstatement } from "../ledger/record.ts";
import { accountRefSchema, parseStoredEntry } from "../ledger/verify/schemas.ts";
import { allStripePaymentsPrefix, entryKey } from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { countRows, readOrNull, type Scan, scanRows } from "../store/scan.ts";

const rowsPerRead = 100;
const unitsByName = z.record(z.string(), z.int());

/** A payment as every version has written it: damage shows here. */
const paymentSchema = z.object({
  activityId: z.string().min(1).max(64),
  ref: accountRefSchema,
  currency: z.string(),
  paidUnits: z.int().optional(),
  since: z.object({
    refunded: unitsByName,
    refundedInAll: z.int().optional(),
    refunds: unitsByName.optional(),
    failed: unitsByName.optional(),
    withdrawn: unitsByName,
    reinstated: z.array(z.string()),
    taken: decimal,
    booked: decimal,
    before: decimal.optional(),
  }).optional(),
});
type StoredPayment = z.output<typeof paymentSchema>;

/**
 * Verifies all Stripe payments: the deposit of each exists. The reverse cannot be checked, since a
 * deposit does not record whether it came from Stripe.
 */
export function scanPayments({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "payments",
    kv,
    prefix: allStripePaymentsPrefix,
    rowsPerRead,
    async look(rows, counts) {
      const payments = rows.map(({ value }) => readOrNull(value, decode));
      // The deposit is written with the payment, and never deleted.
      const entries = await kv.getMany(payments.map(entryKeyOf));
      countRows(counts, "payments", rows.length);
      return rows.flatMap((row, at) => {
        const fault = faultOf(payments[at] ?? null, entries[at]);
        return fault === null ? [] : [`payment ${row.key[2]} at ${row.key[1]} ${fault}`];
      });
    },
  });
}

function decode(bytes: Uint8Array): StoredPayment {
  return paymentSchema.parse(fromBytes<unknown>(bytes));
}

function entryKeyOf(payment: StoredPayment | null): Key {
  return entryKey(payment ? accountLocation(payment.ref).owner : "", payment?.activityId ?? "");
}

function faultOf(payment: StoredPayment | null, found: Row | undefined): string | null {
  if (!payment) return "cannot be read";
  const entry = readOrNull(found?.value ?? null, parseStoredEntry);
  const named = `names entry ${payment.activityId}`;
  if (!entry) return `${named}, which ${found?.value ? "cannot be read" : "is missing"}`;
  return isItsDeposit(entry, payment) ? null : `${named}, which is not its deposit`;
}

/** The user is renamed in one after the other, so they may differ for a while. */
function isItsDeposit(entry: Entry, { ref }: StoredPayment): boolean {
  const projectId = entry.projectId ?? accountLocation(ref).owner;
  return entry.kind === "deposit" && !isReinstatement(entry) && projectId === ref.projectId;
}
