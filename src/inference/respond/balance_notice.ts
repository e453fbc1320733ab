import { fromDecimal, parseAmount, zero } from "../../base/money.ts";
import { messageFor } from "../../paywall/messages.ts";
import type { AdmittedCall } from "../call.ts";
import type { BalanceNotice, NoticeText } from "../notice.ts";
import { userTrigger } from "../finish/events.ts";
import type { InferenceServices } from "../services.ts";

/** Prepares the notices of a response, before it begins. */
export function createBalanceNotice(
  { linkFor }: Pick<InferenceServices, "linkFor">,
  { attempt: { target: { quote } }, held, caller, user, request, input }: AdmittedCall,
): BalanceNotice | Promise<BalanceNotice> {
  const { project } = caller.snapshot;
  const limit = parseAmount(project.lowBalance);
  // A program that parses JSON could not use the notice.
  const mayEndLow = limit !== null && quote.balance - held < limit && !input.structured;
  const isCut = quote.limitedBy === "balance";
  if (!isCut && !mayEndLow) return noNotice;
  const refused = { reason: "insufficient_funds", trigger: userTrigger(user) } as const;
  const languages = request.headers.get("accept-language");
  return linkFor(project, user, refused).then(({ url }) => {
    const words = (reason: "cut" | "low_balance"): NoticeText => (balance) =>
      messageFor(project, reason, { url, balance, languages });
    const warning = words("low_balance");
    const closing: NoticeText = (balance) =>
      fromDecimal(balance) < (limit ?? zero) ? warning(balance) : "";
    return {
      atLength: isCut ? words("cut") : null,
      atEnd: mayEndLow ? closing : null,
    };
  });
}

/** No notice is due. */
export const noNotice: BalanceNotice = { atLength: null, atEnd: null };
