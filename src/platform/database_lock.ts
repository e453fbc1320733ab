import { basename, dirname, join, resolve } from "node:path";

/**
 * Makes this process the only one that may use the database file; creates its folder if needed.
 * Returns the file's own path, with links resolved: use that from then on. Null when another
 * process has the lock. The lock is held until the process ends, in any way. Throws when the file
 * cannot be created.
 */
export function lockDatabase(kvPath: string): string | null {
  Deno.mkdirSync(dirname(kvPath), { recursive: true, mode: 0o700 });
  const path = databasePath(kvPath);
  const isLocked = Deno.openSync(`${path}.lock`, { create: true, write: true, mode: 0o600 })
    .tryLockSync(true);
  return isLocked ? path : null;
}

/**
 * Returns the path with links resolved, also of a file that does not exist yet: two paths to one
 * file are one. Throws where its folder does not exist.
 */
export function databasePath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const folder = Deno.realPathSync(dirname(path));
  const place = join(folder, basename(path));
  const target = linkOf(place);
  return target === null ? place : databasePath(resolve(folder, target));
}

/** Returns the target of a link; null for anything else. */
function linkOf(path: string): string | null {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return null;
  }
}

/** Whether there is no database at a path yet: no file, or an empty one. */
export function isNewDatabase(path: string): boolean {
  try {
    return Deno.statSync(path).size === 0;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  }
}
