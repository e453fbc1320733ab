/**
 * `deno task verify-ledger [--url http://…] [--json]`: checks a service's whole database, through
 * the service, while it works. Exits 1 when something is wrong, or could not be looked at.
 */
import { existsSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";

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

const attemptMs = 30_000;
const pauseMs = 1_000;
const progressMs = 1_000;

/** Goes through all pages; one that fails is asked for again. Throws when none comes. */
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
  const address = `${url}/v1/admin/verify${cursor && `?cursor=${cursor}`}`;
  for (let attempt = 1;; attempt++) {
    let reason = "";
    try {
      const response = await fetch(address, {
        headers: { authorization: `Bearer ${adminKey}` },
        signal: AbortSignal.timeout(attemptMs),
      });
      const body = await response.json();
      if (response.ok) return body;
      reason = `${response.status} ${body.error?.message ?? ""}`;
      // The service has understood, and will say the same again.
      if (response.status < 500) attempt = attemptsMax;
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
    if (attempt >= attemptsMax) throw new Error(`${url} does not answer: ${reason}`);
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

/** A line on standard error, now and then, so that a long run is seen to go on. */
function createProgress(): NonNullable<VerifyOptions["onPage"]> {
  let toldAt = performance.now();
  return ({ checked, faults }, scan) => {
    if (performance.now() - toldAt < progressMs) return;
    toldAt = performance.now();
    const records = Object.values(checked).reduce((sum, count) => sum + count, 0);
    console.error(`${scan}: ${records} records so far, ${faults.length} faults`);
  };
}

async function main(): Promise<number> {
  if (existsSync(".env")) process.loadEnvFile(".env");
  const { values } = parseArgs({
    args: Deno.args,
    options: { url: { type: "string" }, json: { type: "boolean", default: false } },
  });
  const adminKey = Deno.env.get("ADMIN_KEY");
  if (!adminKey) throw new Error("ADMIN_KEY is not set, in the environment or in .env");
  const [port, baseUrl] = [Deno.env.get("PORT"), Deno.env.get("BASE_URL")];
  // A port of this machine's own is nearer than the address that users come by.
  const here = port || !baseUrl ? `http://localhost:${port || 8000}` : baseUrl;
  const url = values.url ?? here;
  const onPage = createProgress();
  const verdict = await verifyLedger({ url: url.replace(/\/+$/, ""), adminKey, onPage });
  console.log(values.json ? JSON.stringify(verdict, null, 2) : describeVerdict(verdict));
  return verdict.faults.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  Deno.exit(
    await main().catch((error) => {
      console.error(`Farebox could not be verified:\n${error.message}`);
      return 1;
    }),
  );
}
