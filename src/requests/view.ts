import { csvLine, csvRecord } from "../base/csv.ts";
import type { JsonObject } from "../base/json.ts";
import { requestColumns, type RequestRecord } from "./record.ts";

/** A request as the API shows it. */
export function viewRequest({ at, ...record }: RequestRecord): JsonObject {
  return { ...record, createdAt: new Date(at).toISOString() };
}

const csvColumns = requestColumns.map((name) => (name === "at" ? "createdAt" : name));

/** Requests as CSV, with a header. */
export function requestsAsCsv(requests: readonly RequestRecord[]): string {
  return csvLine(csvColumns) +
    requests.map((record) => csvRecord(viewRequest(record), csvColumns)).join("");
}
