import { dirname } from "node:path";

/**
 * Makes this process the only one that may use the database file, in a folder that is made where
 * there is none; false when another one does. Held until the process ends, however it ends. Throws
 * where there can be no such file.
 */
export function lockDatabase(kvPath: string): boolean {
  Deno.mkdirSync(dirname(kvPath), { recursive: true });
  return Deno.openSync(`${kvPath}.lock`, { create: true, write: true }).tryLockSync(true);
}
