import { BoundedMap } from "../base/bounded_map.ts";
import type { Clock } from "../base/clock.ts";
import type { Deps } from "../deps.ts";

/** How long a name's addresses are cached, in ms: a busy server is not looked up each time. */
const resolvedMs = 1_000;
/** How long it is remembered that a name whose servers hang has no addresses. */
const hungMs = 10_000;
const knownMax = 10_000;
// Concurrent lookups: each takes one of the 32 threads of the worker. Names that were quick last
// time wait neither behind slow ones, nor behind unknown ones; they can begin to hang as well.
const quickLookups = { all: 12, own: 4 };
const newLookups = { all: 12, own: 3 };
const slowLookups = { all: 6, own: 2 };
const slowMs = 500;

interface KnownName {
  until: number;
  addresses: Promise<string[]>;
}

/**
 * Resolves names by `lookup`, of which only a few run at once; the others wait. No owner, which is
 * a project or the operator, takes more than a share of those that can hang.
 */
export function createResolve(
  lookup: (host: string) => Promise<string[]>,
  { elapsed }: Pick<Clock, "elapsed">,
): Deps["resolve"] {
  const known = new BoundedMap<string, KnownName>(knownMax);
  /** Whether each name was slow the last time. */
  const wasSlow = new BoundedMap<string, boolean>(knownMax);
  const quick = createTurns(quickLookups);
  const unknown = createTurns(newLookups);
  const slow = createTurns(slowLookups);

  async function measured(host: string): Promise<string[]> {
    const begun = elapsed();
    try {
      return await lookup(host);
    } finally {
      wasSlow.set(host, elapsed() - begun > slowMs);
    }
  }

  return (host, owner) => {
    const found = known.get(host);
    if (found && elapsed() < found.until) return found.addresses;
    const before = wasSlow.get(host);
    const turns = before === undefined ? unknown : before ? slow : quick;
    const addresses = turns(owner, () => measured(host));
    // Concurrent calls share the same lookup.
    const entry = { until: Infinity, addresses };
    known.set(host, entry);
    addresses.then(
      () => void (entry.until = elapsed() + resolvedMs),
      () => void (entry.until = elapsed() + (wasSlow.get(host) ? hungMs : resolvedMs)),
    );
    return addresses;
  };
}

interface Turn {
  owner: string;
  begin: () => void;
}

/**
 * Runs a limited number of tasks at once, `all` together and of one owner at most `own`; the rest
 * wait for their turn.
 */
function createTurns(
  most: { all: number; own: number },
): <T>(owner: string, work: () => Promise<T>) => Promise<T> {
  const waiting: Turn[] = [];
  const running = new Map<string, number>();
  let count = 0;

  const mayBegin = ({ owner }: Pick<Turn, "owner">) =>
    count < most.all && (running.get(owner) ?? 0) < most.own;

  function take(owner: string): void {
    count++;
    running.set(owner, (running.get(owner) ?? 0) + 1);
  }

  function giveBack(owner: string): void {
    count--;
    const left = (running.get(owner) ?? 1) - 1;
    if (left > 0) running.set(owner, left);
    else running.delete(owner);
    const at = waiting.findIndex(mayBegin);
    const [next] = at < 0 ? [] : waiting.splice(at, 1);
    if (!next) return;
    take(next.owner);
    next.begin();
  }

  return async (owner, work) => {
    if (mayBegin({ owner })) take(owner);
    else await new Promise<void>((begin) => waiting.push({ owner, begin }));
    try {
      return await work();
    } finally {
      giveBack(owner);
    }
  };
}
