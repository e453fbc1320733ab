import { basename, dirname, join } from "node:path";

/** The database may be read by its owner alone: it contains balances, texts and sealed secrets. */
const ownerOnly = 0o600;

/** What SQLite, a backup and a restore put beside the database. */
const siblingEndings =
  /^(|-wal|-shm|-journal|\.lock|\.admin-key|\.copying.*|\.restoring.*|\.before-restore-.*)$/;

/**
 * Creates an empty file that only its owner may read, where there is none; SQLite gives the same
 * permissions to what it puts beside. It must not be called once the database is open: closing any
 * descriptor of the file would drop SQLite's locks on it.
 */
export function createPrivateFile(path: string): void {
  try {
    Deno.openSync(path, { createNew: true, write: true, mode: ownerOnly }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

/**
 * Removes the permissions of group and others from the database and from what belongs to it.
 * Returns the paths of files that others may still access, such as another user's.
 */
export function restrictDatabase(path: string): string[] {
  if (Deno.build.os === "windows") return [];
  const folder = dirname(path);
  return [...Deno.readDirSync(folder)]
    .filter(({ name, isFile }) => isFile && isSibling(name, basename(path)))
    .map(({ name }) => join(folder, name))
    .filter((file) => !restrict(file));
}

function isSibling(name: string, database: string): boolean {
  return name.startsWith(database) && siblingEndings.test(name.slice(database.length));
}

/** Whether only its owner may access the file by now. */
function restrict(path: string): boolean {
  try {
    const { mode } = Deno.statSync(path);
    if (mode === null || (mode & 0o077) === 0) return true;
    Deno.chmodSync(path, mode & 0o700);
    return true;
  } catch (error) {
    // SQLite and a backup remove their files at any time.
    return error instanceof Deno.errors.NotFound;
  }
}

/** Makes new files of this process private, where its permissions allow that. */
export function restrictNewFiles(): void {
  try {
    Deno.umask(0o077);
  } catch {
    // Without it, the database's files are still created with their own permissions.
  }
}
