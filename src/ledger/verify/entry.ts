import { entryKinds } from "../../base/entry_kinds.ts";
import { type Amount, formatAmount, fromDecimal, zero } from "../../base/money.ts";
import type { Entry, EntryUsage } from "../entry.ts";
import { isReinstatement } from "../record.ts";
import type { ChainWalk } from "../schema.ts";

/** Returns what a response may have cost, by the prices and usage that its entry keeps. */
export type CostsOf = (usage: EntryUsage) => readonly Amount[];

/** Returns the faults of an entry where the walk has met it, apart from those of its refunds. */
export function faultsOfEntry(walk: ChainWalk, entry: Entry, costsOf: CostsOf): string[] {
  return [...faultsOfPlace(walk, entry), ...faultsOfKind(entry), ...faultsOfCost(entry, costsOf)];
}

function faultsOfPlace(walk: ChainWalk, entry: Entry): string[] {
  const { seq, prev, kind } = entry;
  const [delta, balanceAfter, heldAfter] = [
    fromDecimal(entry.delta),
    fromDecimal(entry.balanceAfter),
    fromDecimal(entry.heldAfter),
  ];
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(entry.id !== walk.next, `is stored as ${walk.next}`);
  if (walk.carried === null) {
    say(seq !== walk.seq, `has number ${seq}, but should have ${walk.seq}`);
  } else {
    say(seq > walk.seq, `has number ${seq}, but should have at most ${walk.seq}`);
    say(entryKinds[kind].isArchived, `is a ${kind} that should have been archived`);
  }
  // Of the entries that archiving has kept, the first may have any number.
  const mayBeFirst = seq === 1 || walk.carried !== null || kind === "carried";
  say(
    prev === null ? !mayBeFirst : seq === 1,
    `is number ${seq} and names ${prev ?? "none"} as the previous entry`,
  );
  say(
    walk.balance !== null && balanceAfter !== fromDecimal(walk.balance),
    `has balanceAfter ${entry.balanceAfter}, but should have ${walk.balance}`,
  );
  say(
    seq === 1 && kind !== "carried" && delta !== balanceAfter,
    `is the first entry, but its delta ${entry.delta} is not its balanceAfter`,
  );
  say(balanceAfter < 0n, `leaves ${entry.balanceAfter}, less than zero`);
  say(heldAfter < 0n || heldAfter > balanceAfter, `has heldAfter ${entry.heldAfter}`);
  say(
    entry.projectId === undefined && ![walk.name, walk.formerly].includes(entry.user),
    `is of user ${entry.user}, but in the account of ${walk.name}`,
  );
  return faults;
}

function faultsOfKind(entry: Entry): string[] {
  const { kind, usage, refundedActivityId: original } = entry;
  const delta = fromDecimal(entry.delta);
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(`is a ${kind} ${what}`));
  const { direction, hasUsage } = entryKinds[kind];
  say(direction === "credit" && delta < 0n, `of ${entry.delta}`);
  say(direction === "debit" && delta > 0n, `of ${entry.delta}`);
  say(!mayBeShort(entry), `with a shortfall of ${entry.shortfall}`);
  say(kind === "refund" && original === null, "of no entry");
  say(kind !== "refund" && original !== null && !isReinstatement(entry), `of entry ${original}`);
  say((kind === "carried") !== (entry.carried !== undefined), "that states what it stands for");
  say((entry.carried?.entries ?? 0) > entry.seq, `of ${entry.carried?.entries} entries`);
  say(hasUsage !== (usage !== null), usage ? "with a usage" : "without its usage");
  return faults;
}

/**
 * Whether an entry may have a shortfall: only a debit, and never a charge, which is refused
 * instead.
 */
function mayBeShort(entry: Entry): boolean {
  const shortfall = fromDecimal(entry.shortfall);
  if (isReinstatement(entry)) return shortfall <= 0n;
  const { direction, mayFallShort } = entryKinds[entry.kind];
  const isDebit = direction === "debit" ||
    (direction === "either" && fromDecimal(entry.delta) <= 0n);
  return isDebit && mayFallShort ? shortfall >= 0n : shortfall === 0n;
}

function faultsOfCost({ usage, delta, shortfall }: Entry, costsOf: CostsOf): string[] {
  if (usage === null) return [];
  const due = fromDecimal(shortfall) - fromDecimal(delta);
  const costs = costsOf(usage);
  if (costs.some((cost) => cost === due)) return [];
  const cost = formatAmount(costs[0] ?? zero);
  return [`was due ${formatAmount(due)}, but its tokens cost ${cost}`];
}
