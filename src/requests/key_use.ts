import { type Amount, fromDecimal, toAmount, zero } from "../base/money.ts";
import type { Kv } from "../store/kv.ts";
import { listRequests } from "./list.ts";

/** The use of one API key, as far as the log of requests was read. */
export interface KeyUse {
  /** The last request, in milliseconds since 1970. */
  lastAt: number;
  requests: number;
  /** The sum of the charges of the requests. */
  spent: Amount;
}

/** The use of a project's keys. */
export interface KeyUses {
  /** By the key's id. */
  keys: ReadonlyMap<string, KeyUse>;
  /** The oldest request that was read, in milliseconds since 1970; null where all were read. */
  since: number | null;
}

/** So many rows and requests are read: some 30 ms. */
const rows = 80;
const requestsMax = 5_000;

/** Reads what was done with a project's keys, from the last requests in the log. */
export async function readKeyUses(kv: Kv, projectId: string): Promise<KeyUses> {
  const page = await listRequests(kv, projectId, { limit: requestsMax, filter: {}, rows });
  const keys = new Map<string, KeyUse>();
  for (const { key, at, cost, count } of page.requests) {
    const { lastAt, requests, spent } = keys.get(key) ?? { lastAt: at, requests: 0, spent: zero };
    keys.set(key, {
      lastAt: Math.max(lastAt, at),
      requests: requests + count,
      spent: toAmount(spent + fromDecimal(cost)),
    });
  }
  return { keys, since: page.nextCursor === null ? null : page.requests.at(-1)?.at ?? null };
}
