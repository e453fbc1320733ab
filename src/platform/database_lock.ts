import { basename, dirname, join, resolve } from "node:path";

/**
 * Makes this process the only one that may use the database file, in a folder that is made where
 * there is none. Gives the file's own path, whatever links lead to it: by that it is to be used
 * from then on. Null when another process has it. Held until the process ends, however it ends.
 * Throws where there can be no such file.
 */
export function lockDatabase(kvPath: string): string | null {
  Deno.mkdirSync(dirname(kvPath), { recursive: true });
  const path = ownPath(kvPath);
  const isLocked = Deno.openSync(`${path}.lock`, { create: true, write: true }).tryLockSync(true);
  return isLocked ? path : null;
}

/** The path without links, also of a file that is not there yet: two ways to one file are one. */
function ownPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const folder = Deno.realPathSync(dirname(path));
  const place = join(folder, basename(path));
  const target = linkOf(place);
  return target === null ? place : ownPath(resolve(folder, target));
}

/** Where a link leads to; null for what is none, or is not there. */
function linkOf(path: string): string | null {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return null;
  }
}
