import { fromDecimal } from "../base/money.ts";
import { absoluteAmount } from "../ledger/entry.ts";
import type { MoneyRecorder } from "../ledger/record.ts";
import type { WalletJoins } from "./joins.ts";

/**
 * Wraps a recorder: a payment that is taken back is found also where the wallet that got it has
 * become part of another one.
 */
export function takingBack(
  recorder: MoneyRecorder,
  joins: Pick<WalletJoins, "bringBack">,
): MoneyRecorder {
  return {
    ...recorder,
    async refund(request) {
      const { ref: { wallet }, amount, original } = request;
      if (wallet && original.kind === "deposit") {
        await joins.bringBack(wallet, amount ?? fromDecimal(absoluteAmount(original)));
      }
      return await recorder.refund(request);
    },
  };
}
