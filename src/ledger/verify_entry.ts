import { fromDecimal } from "../base/money.ts";
import type { Entry, EntryKind } from "./entry.ts";
import { isGivenBack } from "./give_back.ts";
import type { Walk } from "./schema.ts";

/** What is wrong with an entry, as the walk has come to it; what it refunds is another matter. */
export function faultsOfEntry(walk: Walk, entry: Entry): string[] {
  return [...faultsOfPlace(walk, entry), ...faultsOfKind(entry)];
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
  const { kind } = entry;
  const [delta, shortfall] = [fromDecimal(entry.delta), fromDecimal(entry.shortfall)];
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(
    !(isGivenBack(entry) ? shortfall <= 0n : shortfall >= 0n),
    `has shortfall ${entry.shortfall}`,
  );
  say(creditKinds.includes(kind) && delta < 0n, `is a ${kind} of ${entry.delta}`);
  say(debitKinds.includes(kind) && delta > 0n, `is a ${kind} of ${entry.delta}`);
  return faults;
}
