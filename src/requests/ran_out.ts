import { refusalReasons } from "../base/refusal_reasons.ts";
import type { Kv } from "../store/kv.ts";
import { listRequests } from "./list.ts";

/** A user who was refused for lack of money. */
export interface RanOut {
  user: string;
  /** Refused requests, as far as the log was read. */
  requests: number;
  /** The last of them, in milliseconds since 1970. */
  lastAt: number;
}

/** So much of the log is read: some 5 ms. */
const rows = 20;
const requestsMax = 500;

/** Returns who was refused for lack of money from `from` until before `to`, the last first. */
export async function readRanOut(
  kv: Kv,
  projectId: string,
  { from, to }: { from: number; to: number },
): Promise<RanOut[]> {
  const reason = refusalReasons.insufficient_funds.code;
  const filter = { outcome: "refused", reason, from, to } as const;
  const { requests } = await listRequests(kv, projectId, { limit: requestsMax, filter, rows });
  const users = new Map<string, RanOut>();
  for (const { user, at, count } of requests) {
    if (user === null) continue;
    const found = users.get(user);
    if (found) found.requests += count;
    else users.set(user, { user, requests: count, lastAt: at });
  }
  return [...users.values()];
}
