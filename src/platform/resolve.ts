import type { Clock } from "../base/clock.ts";
import type { Deps } from "../deps.ts";

/** How long a name's addresses are cached, in ms: a busy receiver is not looked up each time. */
const resolvedMs = 1_000;
const knownMax = 10_000;
// Concurrent lookups. Each takes one of 32 threads, which the store's files and everything else
// need too. Names that were quick last time wait neither behind slow ones, nor behind unknown ones.
const quickLookupsMax = 8;
const newLookupsMax = 6;
const slowLookupsMax = 4;
const slowMs = 500;

/** Resolves names by `lookup`, of which only a few run at once; the others wait. */
export function createResolve(
  lookup: (host: string) => Promise<string[]>,
  { elapsed }: Pick<Clock, "elapsed">,
): Deps["resolve"] {
  const known = new Map<string, { until: number; addresses: Promise<string[]> }>();
  /** Whether each name was slow the last time. */
  const wasSlow = new Map<string, boolean>();
  const quick = createTurns(quickLookupsMax);
  const unknown = createTurns(newLookupsMax);
  const slow = createTurns(slowLookupsMax);

  async function measured(host: string): Promise<string[]> {
    const begun = elapsed();
    try {
      return await lookup(host);
    } finally {
      if (wasSlow.size >= knownMax) wasSlow.clear();
      wasSlow.set(host, elapsed() - begun > slowMs);
    }
  }

  return (host) => {
    const found = known.get(host);
    if (found && elapsed() < found.until) return found.addresses;
    if (known.size >= knownMax) known.clear();
    const before = wasSlow.get(host);
    const turns = before === undefined ? unknown : before ? slow : quick;
    const addresses = turns(() => measured(host));
    // Concurrent calls share the same lookup.
    const entry = { until: Infinity, addresses };
    known.set(host, entry);
    const ended = () => void (entry.until = elapsed() + resolvedMs);
    addresses.then(ended, ended);
    return addresses;
  };
}

/** Runs a limited number of tasks at once; the rest wait for their turn. */
function createTurns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // Its slot goes to the next task, or is free.
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
