import type { Json } from "../base/json.ts";
import { fromDecimal, parseAmount, zero } from "../base/money.ts";
import { messageFor } from "../paywall/messages.ts";
import type { AdmittedCall, InferenceDeps } from "./call.ts";
import { userTrigger } from "./events.ts";

/** What is said to an answer's reader at its end, by the balance that its charge has left; or "". */
export type NoticeText = (balance: string) => string;

/** What an answer says of its reader's credit: where it was cut for that, and where it was not. */
export interface BalanceNotice {
  atLength: NoticeText | null;
  atEnd: NoticeText | null;
}

/** The last words of an answer that is about to begin. */
export async function createBalanceNotice(
  { linkFor }: InferenceDeps,
  { quote, caller, user, request, input }: AdmittedCall,
): Promise<BalanceNotice> {
  const { project } = caller.snapshot;
  const limit = parseAmount(project.lowBalance);
  // A machine that reads JSON could make nothing of it.
  const mayEndLow = limit !== null && quote.balance - quote.amount < limit && !input.structured;
  if (!quote.cappedByBalance && !mayEndLow) return { atLength: null, atEnd: null };
  const asked = { obstacle: "insufficient_funds", trigger: userTrigger(user) } as const;
  const url = await linkFor(project, user, asked);
  const languages = request.headers.get("accept-language");
  const words = (reason: "cut" | "low_balance"): NoticeText => (balance) =>
    messageFor(project, reason, { url, balance, languages });
  const warning = words("low_balance");
  const closing: NoticeText = (
    balance,
  ) => (fromDecimal(balance) < (limit ?? zero) ? warning(balance) : "");
  return {
    atLength: quote.cappedByBalance ? words("cut") : null,
    atEnd: mayEndLow ? closing : null,
  };
}

/** What the words to a choice are, by how it ended; null to one that ends in a call of a tool. */
export function noticeFor(
  reason: Json | undefined,
  { atLength, atEnd }: BalanceNotice,
): NoticeText | null {
  if (reason === "tool_calls") return null;
  return reason === "length" ? atLength ?? atEnd : atEnd;
}
