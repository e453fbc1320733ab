import type { Json } from "../base/json.ts";
import { fromDecimal, parseAmount, zero } from "../base/money.ts";
import { messageFor } from "../paywall/message.ts";
import type { Answer, ChatRooms } from "./answer.ts";
import { byUser } from "./events.ts";

/** What is said to an answer's reader at its end, by the balance that its charge has left; or "". */
export type Words = (balance: string) => string;

/** What an answer says of its reader's credit: where it was cut for that, and where it was not. */
export interface LastWords {
  cut: Words | null;
  closing: Words | null;
}

/** The last words of an answer that is about to begin. */
export async function lastWords(
  { linkFor }: ChatRooms,
  { quote, caller, user, request, chat }: Answer,
): Promise<LastWords> {
  const { project } = caller.snapshot;
  const limit = parseAmount(project.lowBalance);
  // A machine that reads JSON could make nothing of it.
  const mayEndLow = limit !== null && quote.balance - quote.amount < limit && !chat.structured;
  if (!quote.clamped && !mayEndLow) return { cut: null, closing: null };
  const asked = { obstacle: "insufficient_funds", trigger: byUser(user) } as const;
  const url = await linkFor(project, user, asked);
  const languages = request.headers.get("accept-language");
  const words = (reason: "cut" | "low_balance"): Words => (balance) =>
    messageFor(project, reason, { url, balance, languages });
  const warning = words("low_balance");
  const closing: Words = (
    balance,
  ) => (fromDecimal(balance) < (limit ?? zero) ? warning(balance) : "");
  return { cut: quote.clamped ? words("cut") : null, closing: mayEndLow ? closing : null };
}

/** What the words to a choice are, by how it ended; null to one that ends in a call of a tool. */
export function wordsTo(reason: Json | undefined, { cut, closing }: LastWords): Words | null {
  if (reason === "tool_calls") return null;
  return reason === "length" ? cut ?? closing : closing;
}
