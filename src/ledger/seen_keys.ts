/** Tells which rows a write may create without reading them first. */
interface SeenKeys {
  /**
   * Whether this process sees the key for the first time, as far as it remembers. Remembers the
   * key.
   */
  isNew(name: string): boolean;
  /**
   * Reports that a row whose key was new here existed, as after a restart or beside another
   * process.
   */
  onCollision(): void;
}

/** The least number of names to remember; at most twice as many are kept. */
const seenKeysMin = 10_000;
/**
 * How many keys count as seen after a collision. A write that meets an existing row makes its whole
 * batch retry one by one: that must be rare.
 */
const cautiousAfterCollision = 10_000;

/**
 * Creates the memory of one process. A caller repeats a request soon, and mostly to the same
 * process. So a key that was not seen here is taken for new, until the write's check says
 * otherwise. This saves a read each time.
 */
export function createSeenKeys(): SeenKeys {
  let names = new Set<string>();
  let before = new Set<string>();
  let cautiousReads = 0;

  function remember(name: string): void {
    if (names.size >= seenKeysMin) {
      before = names;
      names = new Set();
    }
    names.add(name);
  }

  return {
    isNew(name) {
      const isKnown = names.has(name) || before.has(name);
      remember(name);
      if (cautiousReads === 0) return !isKnown;
      cautiousReads--;
      return false;
    },
    onCollision() {
      cautiousReads = cautiousAfterCollision;
    },
  };
}
