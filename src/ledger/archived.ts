import { type ApiError, badRequest } from "../base/errors.ts";
import { isId, timeOfId } from "../base/ids.ts";
import { fromBytes } from "../base/json.ts";
import { archivedKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";

/** Up to when a project was archived. */
export interface ArchivedState {
  /** Entries before this time have been archived, in ms since 1970. */
  before: number;
  /** The SHA-256 that the last sealed file states. Its entries were removed. */
  sha256: string;
}

/** Reads how far a project was archived; null where nothing was. */
export async function readArchived(kv: Kv, projectId: string): Promise<ArchivedState | null> {
  const { value } = await kv.get(archivedKey(projectId));
  return value && fromBytes<ArchivedState>(value);
}

/** Whether an id without an entry may be the id of an archived entry. */
export async function mayBeArchived(kv: Kv, projectId: string, id: string): Promise<boolean> {
  const state = await readArchived(kv, projectId);
  return state !== null && isId("act", id) && timeOfId(id) < state.before;
}

/** 400: the activity is in a sealed file. */
export function archivedActivity(): ApiError {
  const message = "The charges of responses from that time are archived: they are in sealed " +
    "files, and cannot be refunded any more. Make a deposit instead.";
  return badRequest("activityId", message, "archived");
}
