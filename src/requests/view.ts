import { csvRecord } from "../base/csv.ts";
import type { JsonObject } from "../base/json.ts";
import { requestColumns, type RequestRecord } from "./record.ts";

/** A request as the API shows it. */
export function viewRequest({ at, ...record }: RequestRecord): JsonObject {
  return { ...record, createdAt: new Date(at).toISOString() };
}

/** The columns of requests as CSV. */
export const requestCsvColumns = requestColumns.map((name) => (name === "at" ? "createdAt" : name));

/** Requests as lines of CSV, without a header. */
export function requestLines(requests: readonly RequestRecord[]): string {
  return requests.map((record) => csvRecord(viewRequest(record), requestCsvColumns)).join("");
}
