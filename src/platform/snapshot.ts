import type { Snapshot } from "../deps.ts";
import { createPrivateFile } from "./database_files.ts";

// Why this is safe beside Deno KV, which has the same file open (tests/cli/backup_test.ts holds
// it):
//
// - Consistent: Deno KV keeps the file in WAL mode and makes one SQLite transaction of each atomic
//   write. All rows are read within one read transaction: the copy is the database as it stood
//   between two writes. Writers go on meanwhile; only the WAL file grows, since no checkpoint can
//   pass the reader.
// - Locks: POSIX drops all of a process's locks on a file when any of its descriptors is closed,
//   which is why two copies of SQLite in one process must never open one file. `node:sqlite` and
//   Deno KV are one copy, which knows of all its connections and closes none too early. For the
//   same reason nothing else in this process may open the database file, not even to read it.
//
// `VACUUM INTO` would do as well, but Deno lets it only a process that may do everything.

/** What a copy that died with its process left behind. Nothing else has this name. */
const copyOf = (path: string) => `${path}.copying`;
const companions = ["", "-journal", "-wal", "-shm"];

/** Removes what a process that died in the middle of a copy left beside the database. */
export async function removeLeftCopies(path: string): Promise<void> {
  for (const end of companions) {
    await Deno.remove(copyOf(path) + end).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }
}

/**
 * Copies the database at `path` beside itself. The copy's disk space is freed when it has been
 * read.
 */
export async function copyDatabase(path: string): Promise<Snapshot> {
  await removeLeftCopies(path);
  const copy = copyOf(path);
  try {
    createPrivateFile(copy);
    await runCopy(path, copy);
    const file = await Deno.open(copy);
    return { bytes: (await file.stat()).size, stream: file.readable };
  } finally {
    // Its name is removed at once, and its space when it is closed, in any way.
    await removeLeftCopies(path);
  }
}

/** In a worker: `node:sqlite` blocks its thread until everything is copied. */
function runCopy(from: string, to: string): Promise<void> {
  const url = new URL("./snapshot_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  return new Promise<void>((resolve, reject) => {
    worker.onmessage = ({ data: { error } }) => error ? reject(new Error(error)) : resolve();
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    worker.postMessage({ from, to });
  }).finally(() => worker.terminate());
}
