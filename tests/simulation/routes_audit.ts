import { fromDecimal } from "../../src/base/money.ts";
import type { EntryUsage } from "../../src/ledger/entry.ts";
import type { ModelCall } from "./model_server.ts";
import { routedUpstreams, searchPrice, upstreamAt } from "./routed_upstreams.ts";
import type { Violations } from "./violations.ts";

const attemptsMax = 5;

/** Checks a further attempt of a request as it reaches an upstream. */
export function auditAttempt(
  violations: Violations,
  call: ModelCall,
  before: readonly ModelCall[],
): void {
  const about = () => JSON.stringify([...before, call]);
  const isRouted = upstreamAt(call.host) !== null;
  violations.must(isRouted, "without a route a request calls its upstream once", about);
  violations.must(before.length < attemptsMax, "attempts are bounded", about);
  violations.must(
    before.every(({ ended }) => ended),
    "attempts of a request follow each other",
    about,
  );
  violations.must(
    before.every(({ events }) => events === 0),
    "no other target is asked once a response has begun",
    about,
  );
}

/** Checks what an entry says of its attempts. */
export function auditEntry(
  violations: Violations,
  usage: EntryUsage,
  attempts: readonly ModelCall[],
): void {
  const last = attempts.at(-1);
  const name = last ? upstreamAt(last.host) : null;
  const about = () => JSON.stringify([usage, attempts]);
  violations.must((usage.upstream ?? null) === name, "an entry names who answered", about);
  const counted = usage.attempts ?? 1;
  // An attempt without a connection never reaches an upstream.
  const isCounted = counted >= attempts.length && counted <= attemptsMax;
  violations.must(isCounted, "an entry counts its attempts", about);
  const upstream = name === null ? undefined : routedUpstreams[name];
  if (!upstream) return;
  const input = usage.uncachedInputTokens + usage.cachedInputTokens + usage.cacheWriteTokens;
  const searches = BigInt(usage.toolCalls?.web_search ?? 0) * searchPrice;
  const own = BigInt(input) * upstream.input + BigInt(usage.outputTokens) * upstream.output +
    searches;
  const failed = attempts.slice(0, -1).reduce((sum, attempt) => sum + costOf(attempt), 0n);
  violations.must(
    usage.upstreamCost !== undefined && fromDecimal(usage.upstreamCost) === own + failed,
    "upstream costs are those of all attempts",
    about,
  );
}

/** What an attempt that failed is known to have cost. */
function costOf({ host, billed }: ModelCall): bigint {
  const upstream = routedUpstreams[upstreamAt(host) ?? ""];
  if (!upstream || !billed) return 0n;
  return BigInt(billed.input) * upstream.input + BigInt(billed.output) * upstream.output;
}
