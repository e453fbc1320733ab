import type { Json } from "../base/json.ts";

/** The text of a notice for the balance after the charge; "" where none is due. */
export type NoticeText = (balance: string) => string;

/** Notices that a response may end with. */
export interface BalanceNotice {
  atLength: NoticeText | null;
  atEnd: NoticeText | null;
}

/** Returns the notice for a choice, by its finish reason; null where it ends in a tool call. */
export function noticeFor(
  reason: Json | undefined,
  { atLength, atEnd }: BalanceNotice,
): NoticeText | null {
  if (reason === "tool_calls") return null;
  return reason === "length" ? atLength ?? atEnd : atEnd;
}
