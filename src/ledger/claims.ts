/** Which rows a write need not look for before it makes them. */
export interface Claims {
  /** Whether nobody has come here with it before, as far as is remembered. Remembers it. */
  isNew(name: string): boolean;
  /** One that was new here was there already, as after a restart or beside another process. */
  surprised(): void;
}

/** Names that are remembered at least; at most twice as many are. */
const namesMax = 10_000;
/** A write that finds such a row makes all of its batch go singly: that must be rare. */
const wareFor = 10_000;

/**
 * A caller that repeats a request does so soon, and mostly to the process that it asked before. What
 * was not seen here is new until a write's check says otherwise, which spares a read for each.
 */
export function createClaims(): Claims {
  let names = new Set<string>();
  let before = new Set<string>();
  let ware = 0;

  function remember(name: string): void {
    if (names.size >= namesMax) {
      before = names;
      names = new Set();
    }
    names.add(name);
  }

  return {
    isNew(name) {
      const isKnown = names.has(name) || before.has(name);
      remember(name);
      if (ware === 0) return !isKnown;
      ware--;
      return false;
    },
    surprised() {
      ware = wareFor;
    },
  };
}
