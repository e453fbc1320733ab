import type { Entry } from "../ledger/entry.ts";

const kinds: Record<Entry["kind"], string> = {
  deposit: "Added",
  charge: "Charge",
  usage: "Answer",
  refund: "Refund",
  trial: "Trial credit",
  expired: "Answer, broken off",
};

/** An entry as a line of a page. */
export function activityForPeople({ createdAt, kind, usage, delta }: Entry, currency: string) {
  const at = new Date(createdAt).toISOString();
  const what = usage ? `${kinds[kind]} (${usage.model})` : kinds[kind];
  const day = `${at.slice(0, 16).replace("T", " ")} UTC`;
  return { at, day, what, amount: `${delta} ${currency}` };
}
