import { type BalanceNotice, noticeFor, type NoticeText } from "../../inference/notice.ts";

/** The kind of end of a stop reason, in the words of `noticeFor`. Others end without a notice. */
const kindOfEnd: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  refusal: "stop",
  max_tokens: "length",
};

/** Blocks after which a text may follow: what a tool does next must come right after its call. */
const mayPrecedeText = new Set([null, "text", "thinking", "redacted_thinking"]);

/** The notice for a message with this stop reason, whose last block is of this type; or null. */
export function noticeAfter(
  reason: string,
  lastBlock: string | null,
  notice: BalanceNotice,
): NoticeText | null {
  const kind = Object.hasOwn(kindOfEnd, reason) ? kindOfEnd[reason] : "tool_calls";
  return mayPrecedeText.has(lastBlock) ? noticeFor(kind, notice) : null;
}

/**
 * The stop reason of a message that ends with a notice. Where the balance has cut a plain text, the
 * bound was ours: clients that continue or complain at `max_tokens` would hide the notice.
 */
export function reasonWithNotice(
  reason: string,
  { notice, structured }: { notice: BalanceNotice; structured: boolean },
): string {
  const isCut = reason === "max_tokens" && notice.atLength !== null;
  return isCut && !structured ? "end_turn" : reason;
}
