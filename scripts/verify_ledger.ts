// Checks a service's whole database, through the service, while it works: `farebox verify`.
import { createApi } from "./farebox/api.ts";
import { Refusal, Unreachable } from "./farebox/failure.ts";

/** What a verification has come to. */
export interface Verdict {
  /** How much was looked at, by what it is. */
  checked: Record<string, number>;
  faults: string[];
  /** Calls that it took, and milliseconds. */
  pages: number;
  ms: number;
}

interface VerifyOptions {
  url: string;
  adminKey: string;
  /** How often a page is asked for before it is given up. */
  attemptsMax?: number;
  /** Told after every page. */
  onPage?(verdict: Verdict, scan: string): void;
}

const pauseMs = 1_000;

/** Goes through all pages; one that fails is asked for again. Throws `Refusal`, `Unreachable`. */
export async function verifyLedger(options: VerifyOptions): Promise<Verdict> {
  const startedAt = performance.now();
  const verdict: Verdict = { checked: {}, faults: [], pages: 0, ms: 0 };
  for (let cursor: string | null = ""; cursor !== null;) {
    const page = await readPage(options, cursor);
    for (const [what, count] of Object.entries(page.checked)) {
      verdict.checked[what] = (verdict.checked[what] ?? 0) + count;
    }
    verdict.faults.push(...page.faults);
    verdict.pages++;
    verdict.ms = Math.round(performance.now() - startedAt);
    options.onPage?.(verdict, page.scan);
    cursor = page.nextCursor;
  }
  return verdict;
}

interface Page {
  scan: string;
  checked: Record<string, number>;
  faults: string[];
  nextCursor: string | null;
}

async function readPage(
  { url, adminKey, attemptsMax = 5 }: VerifyOptions,
  cursor: string,
): Promise<Page> {
  const api = createApi({ url, adminKey });
  const query = cursor === "" ? {} : { cursor };
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
