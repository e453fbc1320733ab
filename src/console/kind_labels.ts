import type { EntryKind } from "../base/entry_kinds.ts";

/** What kinds of entries are called. */
export const kindLabels: Readonly<Record<EntryKind, string>> = {
  deposit: "Deposit",
  charge: "Charge",
  usage: "Response",
  refund: "Refund",
  trial: "Trial credit",
  expired: "Interrupted response",
  transfer: "Moved between wallets",
  carried: "Carried forward",
};
