// Checks a service's whole database, through the service, while it works: `farebox verify`.
import { createApi } from "./farebox/api.ts";
import { Refusal, Unreachable } from "./farebox/failure.ts";

/** What a verification has come to. */
interface Verdict {
  /** How much was looked at, by what it is. */
  checked: Record<string, number>;
  faults: string[];
  /** Calls that it took, and milliseconds. */
  pages: number;
  ms: number;
}

/** What to verify, and through which service. */
interface VerifyOptions {
  url: string;
  adminKey: string;
  /** Only what came since each account was last verified. */
  since?: boolean;
  /** In how many parts at the same time; one by default. */
  parallel?: number;
  /** How often a page is asked for before it is given up. */
  attemptsMax?: number;
  /** Told after every page. */
  onPage?(verdict: Verdict, scan: string): void;
}

type Query = Record<string, string | number>;

const pauseMs = 1_000;
/** An owner's accounts may move, or be archived, while they are verified in parts. */
const ownerAttempts = 3;

/** Goes through all pages; one that fails is asked for again. Throws `Refusal`, `Unreachable`. */
export async function verifyLedger(options: VerifyOptions): Promise<Verdict> {
  const { since = false, parallel: parts = 1 } = options;
  const run = new Run(options);
  if (parts === 1) await run.follow({ since: String(since) });
  else {
    const part = (number: number, more: Query) =>
      run.follow({ since: String(since), part: number, parts, ...more });
    // All parts count entries up to the same time.
    const others: Promise<void>[] = [];
    await run.follow({ since: String(since), part: 1, parts }, (until) => {
      for (let number = 2; number <= parts; number++) others.push(part(number, { until }));
      // A failure is thrown where all are awaited.
      others.forEach((other) => other.catch(() => {}));
    });
    await Promise.all(others);
    await run.verifyUneven();
  }
  return run.verdict;
}

/** One verification: what all its parts have found. */
class Run {
  readonly verdict: Verdict = { checked: {}, faults: [], pages: 0, ms: 0 };
  readonly #options: VerifyOptions;
  readonly #startedAt = performance.now();
  readonly #tallies = new Map<string, number>();

  constructor(options: VerifyOptions) {
    this.#options = options;
  }

  /** Follows the cursors of one part to their end. */
  async follow(query: Query, onFirst: (until: string) => void = () => {}): Promise<void> {
    const { verdict } = this;
    for (let next: Query | null = query; next !== null;) {
      const page: Page = await readPage(this.#options, next);
      if (next === query) onFirst(page.until);
      for (const [what, count] of Object.entries(page.checked)) {
        verdict.checked[what] = (verdict.checked[what] ?? 0) + count;
      }
      verdict.faults.push(...page.faults);
      for (const [owner, more] of Object.entries(page.tallies)) {
        this.#tallies.set(owner, (this.#tallies.get(owner) ?? 0) + more);
      }
      verdict.pages++;
      verdict.ms = Math.round(performance.now() - this.#startedAt);
      this.#options.onPage?.(verdict, page.scan);
      next = page.nextCursor === null ? null : { cursor: page.nextCursor };
    }
  }

  /** Verifies owners alone where the parts together have counted more entries, or fewer. */
  async verifyUneven(): Promise<void> {
    for (const [owner, more] of this.#tallies) {
      if (more === 0) continue;
      for (let attempt = 1; attempt <= ownerAttempts; attempt++) {
        const alone = new Run(this.#options);
        await alone.follow({ owner });
        this.verdict.pages += alone.verdict.pages;
        const { faults } = alone.verdict;
        if (faults.length > 0 && attempt < ownerAttempts) continue;
        const known = new Set(this.verdict.faults);
        this.verdict.faults.push(...faults.filter((fault) => !known.has(fault)));
        break;
      }
    }
    this.verdict.ms = Math.round(performance.now() - this.#startedAt);
  }
}

interface Page {
  scan: string;
  checked: Record<string, number>;
  faults: string[];
  tallies: Record<string, number>;
  until: string;
  nextCursor: string | null;
}

async function readPage(
  { url, adminKey, attemptsMax = 5 }: VerifyOptions,
  query: Query,
): Promise<Page> {
  const api = createApi({ url, adminKey });
  for (let attempt = 1;; attempt++) {
    try {
      return await api.json("/v1/admin/verify", { query }) as Page;
    } catch (error) {
      // What the service has understood and refuses, it will refuse again.
      const passing = error instanceof Unreachable ||
        error instanceof Refusal && error.status >= 500;
      if (!passing || attempt >= attemptsMax) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** What was looked at, and what is wrong with it, for people. */
export function describeVerdict({ checked, faults, ms }: Verdict): string {
  const counts = Object.entries(checked).map(([what, count]) =>
    `  ${count.toLocaleString("en-US").padStart(12)} ${words(what)}`
  );
  const head = `Looked at in ${(ms / 1000).toFixed(1)} s:`;
  const end = faults.length === 0
    ? "Everything holds."
    : `${faults.length} ${faults.length === 1 ? "fault" : "faults"}:\n` +
      faults.map((fault) => `  ${fault}`).join("\n");
  return [head, ...counts, end].join("\n");
}

/** `idempotencyRecords` -> `idempotency records`. */
function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
