import { type Amount, formatAmount, fromDecimal, zero } from "../base/money.ts";
import type { Entry, EntryKind, EntryUsage } from "./entry.ts";
import { isGivenBack } from "./give_back.ts";
import type { Walk } from "./schema.ts";

/** What an answer may have cost, by what its entry keeps: its price, and what it used. */
export type CostsOf = (usage: EntryUsage) => readonly Amount[];

/** What is wrong with an entry, as the walk has come to it; what it refunds is another matter. */
export function faultsOfEntry(walk: Walk, entry: Entry, costsOf: CostsOf): string[] {
  return [...faultsOfPlace(walk, entry), ...faultsOfKind(entry), ...faultsOfCost(entry, costsOf)];
}

function faultsOfPlace(walk: Walk, entry: Entry): string[] {
  const { seq, prev } = entry;
  const [delta, balanceAfter, heldAfter] = [
    fromDecimal(entry.delta),
    fromDecimal(entry.balanceAfter),
    fromDecimal(entry.heldAfter),
  ];
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(entry.id !== walk.next, `is stored as ${walk.next}`);
  say(seq !== walk.seq, `has number ${seq}, not ${walk.seq}`);
  say((prev === null) !== (seq === 1), `is number ${seq} and names ${prev ?? "none"} before it`);
  say(
    walk.balance !== null && balanceAfter !== fromDecimal(walk.balance),
    `has balanceAfter ${entry.balanceAfter}, not ${walk.balance}`,
  );
  say(
    seq === 1 && delta !== balanceAfter,
    `is the first: its delta ${entry.delta} is not the balance after it`,
  );
  say(balanceAfter < 0n, `leaves ${entry.balanceAfter}, less than zero`);
  say(heldAfter < 0n || heldAfter > balanceAfter, `has heldAfter ${entry.heldAfter}`);
  say(
    entry.projectId === undefined && ![walk.name, walk.formerly].includes(entry.user),
    `is of user ${entry.user}, not ${walk.name}`,
  );
  return faults;
}

const creditKinds: readonly EntryKind[] = ["deposit", "trial"];
const debitKinds: readonly EntryKind[] = ["charge", "usage", "expired"];

function faultsOfKind(entry: Entry): string[] {
  const { kind, usage, refundedActivityId: original } = entry;
  const delta = fromDecimal(entry.delta);
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(`is a ${kind} ${what}`));
  say(creditKinds.includes(kind) && delta < 0n, `of ${entry.delta}`);
  say(debitKinds.includes(kind) && delta > 0n, `of ${entry.delta}`);
  say(!mayBeShort(entry), `with a shortfall of ${entry.shortfall}`);
  say(kind === "refund" && original === null, "of no entry");
  say(kind !== "refund" && original !== null && !isGivenBack(entry), `of entry ${original}`);
  say((kind === "usage") !== (usage !== null), usage ? "with a usage" : "without its usage");
  return faults;
}

/** Only what is taken can be short, and a charge that could not be taken whole is refused. */
function mayBeShort(entry: Entry): boolean {
  const shortfall = fromDecimal(entry.shortfall);
  if (isGivenBack(entry)) return shortfall <= 0n;
  const { kind } = entry;
  const isTaken = kind === "refund" ? fromDecimal(entry.delta) <= 0n : debitKinds.includes(kind);
  return isTaken && kind !== "charge" ? shortfall >= 0n : shortfall === 0n;
}

function faultsOfCost({ usage, delta, shortfall }: Entry, costsOf: CostsOf): string[] {
  if (usage === null) return [];
  const due = fromDecimal(shortfall) - fromDecimal(delta);
  const costs = costsOf(usage);
  if (costs.some((cost) => cost === due)) return [];
  const cost = formatAmount(costs[0] ?? zero);
  return [`comes to ${formatAmount(due)}, but its tokens cost ${cost}`];
}
