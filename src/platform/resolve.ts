import type { Clock } from "../base/clock.ts";
import type { Deps } from "../deps.ts";

/**
 * How long a name's addresses are remembered, in ms: a busy receiver is not asked for each time.
 */
const resolvedMs = 1_000;
const knownMax = 10_000;
// Lookups at once: each takes a thread, of 32 that the store's files and all else need too. Whoever
// was quick the last time waits neither behind who was slow, nor behind who may turn out to be.
const quickLookupsMax = 8;
const newLookupsMax = 6;
const slowLookupsMax = 4;
const slowMs = 500;

/** Finds names' addresses by `lookup`, of which only a few run at once; the others wait. */
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
    // Whoever else asks meanwhile waits for the same answer.
    const entry = { until: Infinity, addresses };
    known.set(host, entry);
    const ended = () => void (entry.until = elapsed() + resolvedMs);
    addresses.then(ended, ended);
    return addresses;
  };
}

/** Runs so much work at once; the rest waits for its turn. */
function createTurns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // Its place is the next one's, or free.
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
