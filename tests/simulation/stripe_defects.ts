import { decodeUtf8 } from "../../src/base/utf8.ts";
import { least } from "../../src/base/money.ts";
import { leftIn } from "../../src/ledger/bounds.ts";
import { accountTx, type Defect, lacks, writing } from "./defect_seams.ts";

/** Defects in the processing of Stripe payments. */
export const stripeDefects: readonly Defect[] = [
  {
    name: "a paid session is recorded for each event about it",
    install: accountTx("put", (inner) =>
      function (key, value) {
        const isKey = key[0] === "idempotency" && String(key[3]).startsWith("stripe:cs_");
        // Each of the two rows prevents it.
        if (!isKey && key[0] !== "stripe_payment") inner.call(this, key, value);
      }),
    seedsMax: 10,
  },
  {
    name: "a refund before its payment is recorded is forgotten",
    seams: writing((write) => lacks(write, "stripe_reversal")),
    seedsMax: 10,
  },
  {
    name: "a refund that cannot be taken back is not recorded",
    install: accountTx("debit", (inner) =>
      function (amount, entry, origin) {
        const isBack = entry.kind === "refund";
        return inner.call(
          this,
          isBack ? least(amount, leftIn(this.bounds([]))) : amount,
          entry,
          origin,
        );
      }),
    seedsMax: 20,
  },
  {
    name: "a shortfall stays due after a reinstatement",
    install: accountTx("credit", (inner) =>
      function (amount, entry, origin) {
        return inner.call(this, amount, entry, origin);
      }),
    seedsMax: 200,
  },
  {
    name: "the changes of a payment are forgotten each time",
    seams: writing((write) => {
      const isNew = write.sets.some(({ value }) => decodeUtf8(value)?.includes("stripe:cs_"));
      return isNew ? write : lacks(write, "stripe_payment");
    }),
    seedsMax: 20,
  },
];
