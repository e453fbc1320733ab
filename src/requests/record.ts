import type { FormatName } from "../base/endpoints.ts";

/** How a request ended. */
export const requestOutcomes = ["completed", "failed", "canceled", "refused"] as const;
/** How a request ended; `refused`: it was not sent to a model. */
export type RequestOutcome = typeof requestOutcomes[number];

/** The record of one request, whatever came of it. It has no text of the request. */
export interface RequestRecord {
  /** Our own id. */
  id: string;
  /** The caller's own id of the request, or ours. */
  requestId: string;
  /** When it arrived, in milliseconds since 1970. */
  at: number;
  outcome: RequestOutcome;
  /** The status of the response. */
  status: number;
  /** Why it failed or was refused: a code; null where it completed. */
  reason: string | null;
  endpoint: FormatName;
  stream: boolean;
  /** Null where the request did not get as far as to name one. */
  user: string | null;
  model: string | null;
  /** The API key's id. */
  key: string;
  /** From its arrival to the end of the response, in milliseconds. */
  latencyMs: number;
  /** Until the first token or the whole response arrived from the upstream; null where none did. */
  firstTokenMs: number | null;
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
  /** The charge, as a decimal string. */
  cost: string;
  /** The request's cost by the provider's price list; null where that is not known. */
  upstreamCost: string | null;
  /** The upstream that answered, where the request was routed. */
  upstream: string | null;
  attempts: number;
  /** The entry in the ledger; null where nothing was charged. */
  activityId: string | null;
  /**
   * How many requests it stands for: refused ones beyond the first are one record. Its other values
   * are of the last; `user` and `model` are null where they differ.
   */
  count: number;
}

type Cell = string | number | boolean | null;

/** The order in which a record is stored. Columns are only added, at the end. */
const columns = [
  "id",
  "requestId",
  "at",
  "outcome",
  "status",
  "reason",
  "endpoint",
  "stream",
  "user",
  "model",
  "key",
  "latencyMs",
  "firstTokenMs",
  "inputTokens",
  "cachedTokens",
  "outputTokens",
  "cost",
  "upstreamCost",
  "upstream",
  "attempts",
  "activityId",
  "count",
] as const satisfies readonly (keyof RequestRecord)[];

/** The columns of a record, as in CSV. */
export const requestColumns: readonly (keyof RequestRecord)[] = columns;

/** A record as it is stored: its values in the order of the columns. */
export type StoredRequest = readonly Cell[];

/** Returns a record as it is stored. */
export function storeRequest(record: RequestRecord): StoredRequest {
  return columns.map((name) => record[name]);
}
