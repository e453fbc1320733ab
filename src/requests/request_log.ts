import { fromBytes, toBytes } from "../base/json.ts";
import { errorFields } from "../base/errors.ts";
import { firstIdAt, timeOfId } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import { decodeProject } from "../projects/project_row.ts";
import { type Eraser, eraseRows, requestIdAfterErasure } from "../store/erase.ts";
import { requestsKey, requestsPrefix } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { ProjectRows } from "../store/project_rows.ts";
import { requestColumns, type RequestRecord, type StoredRequest, storeRequest } from "./record.ts";
import { createRefusalFolds } from "./refusal_folds.ts";

/** Records what came of each request, and keeps it for some days. */
export interface RequestLog {
  /**
   * Records a request. It is written with a later write, within a second, and of many refused
   * ones those after the first within a minute, as one record: a process that dies may lose that
   * much of the log, and of nothing else.
   */
  add(projectId: string, record: RequestRecord): void;
  /** Writes what has not been written. */
  flush(): Promise<void>;
}

/** How long records wait for a write to go with. */
const waitMs = 1_000;
/** How long refused requests are counted together before they are written. */
const foldedMs = 60_000;
/** A row has at most so many records and characters, and so at most 64 KiB. */
const recordsPerRow = 64;
const charsPerRow = 16_000;
/** Records that wait while the store is unavailable; more are dropped. */
const waitingMax = 20_000;

interface Buffer {
  records: string[];
  chars: number;
}

/** Creates the log of requests. Records of a project are written together, many to a row. */
export function createRequestLog(
  { committer, clock, id, log }: Pick<
    Deps,
    "committer" | "clock" | "id" | "log"
  >,
): RequestLog {
  const buffers = new Map<string, Buffer>();
  const folds = createRefusalFolds(clock);
  let isPlanned = false;
  let isFoldPlanned = false;
  let dropped = 0;

  function close(projectId: string, { records }: Buffer): void {
    buffers.delete(projectId);
    const row = {
      key: requestsKey(projectId, id("rql")),
      value: new TextEncoder().encode(`[${records.join(",")}]`),
    };
    committer.carry([row]);
  }

  function planFolded(): void {
    if (isFoldPlanned) return;
    isFoldPlanned = true;
    clock.after(foldedMs, () => {
      isFoldPlanned = false;
      appendFolded();
    });
  }

  function appendFolded(): void {
    for (const { projectId, record } of folds.takeAll()) append(projectId, record);
  }

  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    clock.after(waitMs, () => {
      isPlanned = false;
      writeBuffers().catch((error) => log("warn", "request_log_not_written", errorFields(error)));
    });
  }

  async function flush(): Promise<void> {
    appendFolded();
    await writeBuffers();
  }

  async function writeBuffers(): Promise<void> {
    for (const [projectId, buffer] of buffers) close(projectId, buffer);
    await committer.flush();
    if (dropped > 0) log("warn", "request_log_dropped", { requests: dropped });
    dropped = 0;
  }

  function append(projectId: string, record: RequestRecord): void {
    if (committer.carried() * recordsPerRow >= waitingMax) {
      dropped += record.count;
      return;
    }
    const text = JSON.stringify(storeRequest(record));
    let buffer = buffers.get(projectId);
    if (buffer && buffer.chars + text.length > charsPerRow) {
      close(projectId, buffer);
      buffer = undefined;
    }
    if (!buffer) {
      buffer = { records: [], chars: 0 };
      buffers.set(projectId, buffer);
    }
    buffer.records.push(text);
    buffer.chars += text.length;
    if (buffer.records.length >= recordsPerRow) close(projectId, buffer);
    plan();
  }

  return {
    add(projectId, record) {
      if (folds.fold({ projectId, record })) planFolded();
      else append(projectId, record);
    },
    flush,
  };
}

const userColumn = requestColumns.indexOf("user");
const idColumn = requestColumns.indexOf("id");
const requestIdColumn = requestColumns.indexOf("requestId");

/**
 * Replaces a user by the pseudonym in the log of requests. What waits to be written is written
 * first; other processes of a shared store get the time that they take for it.
 */
export function createRequestEraser(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
  requestLog: Pick<RequestLog, "flush">,
): Eraser {
  const rows = eraseRows({
    name: "requests",
    kv,
    committer,
    prefix: ({ projectId }) => requestsPrefix(projectId),
    rewrite({ key, value }, { user, pseudonym }) {
      const records = value && fromBytes<StoredRequest[]>(value);
      if (!records?.some((record) => record[userColumn] === user)) return null;
      const renamed = records.map((record) => {
        if (record[userColumn] !== user) return record;
        const [own, asked] = [record[idColumn], record[requestIdColumn]].map(String);
        return record.with(userColumn, pseudonym)
          .with(requestIdColumn, requestIdAfterErasure(asked ?? "", own ?? ""));
      });
      return { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
    },
  });
  return {
    ...rows,
    async page(erasure, place, budget) {
      if (place === null) {
        await requestLog.flush();
        if (kv.limits.isShared) await clock.sleep(2 * waitMs);
      }
      return await rows.page(erasure, place, budget);
    },
  };
}

const dayMs = 24 * 60 * 60 * 1000;
const rowsPerPage = 100;

/** Creates the removal of requests that are older than their project keeps them. */
export function createRequestRemoval(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): ProjectRows {
  return {
    kind: "requests",
    async removePage(project, now) {
      const keptMs = decodeProject(project.value).requestLogDays * dayMs;
      const prefix = requestsPrefix(String(project.key[1]));
      const end = [...prefix, firstIdAt("rql", now - keptMs)];
      const keys = (await kv.list({ prefix, end, limit: rowsPerPage })).map(({ key }) => key);
      if (keys.length > 0) await committer.commit({ ...emptyWrite(), deletes: keys });
      const last = keys.at(-1);
      return {
        count: keys.length,
        isMore: keys.length === rowsPerPage,
        endedAt: last ? timeOfId(String(last[2])) + keptMs : now,
      };
    },
  };
}
