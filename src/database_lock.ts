/**
 * Makes this process the only one that may use the database file; false when another one does.
 * Held until the process ends, however it ends.
 */
export function lockDatabase(kvPath: string): boolean {
  return Deno.openSync(`${kvPath}.lock`, { create: true, write: true }).tryLockSync(true);
}
