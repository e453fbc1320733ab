import type { JsonObject } from "../base/json.ts";
import { requestColumns, type RequestRecord, type StoredRequest } from "./record.ts";

/** Reads a stored record. Those of 0.9.0 have no `count`. Version 1.1 may drop it. */
export function readRequest(stored: StoredRequest): RequestRecord {
  const record: JsonObject = {};
  for (const [at, name] of requestColumns.entries()) record[name] = stored[at] ?? null;
  record.count ??= 1;
  return record as unknown as RequestRecord;
}
