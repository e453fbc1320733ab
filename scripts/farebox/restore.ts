import { existsSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Command } from "commander";
import { kvPathFault } from "../../src/config/kv_path.ts";
import { isProven, type Seal } from "../../src/backup/seal.ts";
import { createIds } from "../../src/base/ids.ts";
import type { Secret } from "../../src/base/secret.ts";
import { isDatabaseFile } from "../../src/config/config.ts";
import { type AuditActor, auditRow } from "../../src/projects/audit.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { lockDatabase } from "../../src/platform/database_lock.ts";
import { restrictDatabase } from "../../src/platform/database_files.ts";
import { checkDatabase, SealReader } from "./backup_file.ts";
import { type Given, openTerminal, type Terminal } from "./context.ts";
import { type Failure, refused } from "./failure.ts";
import { createFile, syncFolder, writeAll } from "./output_file.ts";
import { openEnvironment, readSecretsKeys } from "./settings.ts";

const notes = `
Stop the service first, and run this as its user; it needs no network. The current database is kept
beside the new one, as KV_PATH.before-restore-TIME. The backup does not contain what happened after
it: later deposits and charges are lost, and deliveries that were pending are sent again.`;

/** `farebox restore` */
export function addRestore(program: Command): void {
  program.command("restore <file>")
    .description("replace the database by a backup, while the service is stopped")
    .option("--kv-path <path>", "the database; default: KV_PATH, or data/farebox.kv")
    .addHelpText("after", notes)
    .action(async (file: string, options: { kvPath?: string }) => {
      const lookup = openEnvironment();
      const path = options.kvPath ?? lookup("KV_PATH") ?? "data/farebox.kv";
      const terminal = openTerminal(program.opts<Given>());
      const keys = readSecretsKeys(lookup);
      const { kept, isProven } = await restore({ file, path, keys }, terminal);
      const beside = kept === null ? "" : `\nThe previous database is ${kept}.`;
      terminal.print(
        { restored: path, from: file, kept, proven: isProven },
        `${path} is restored from ${file}.${beside}\n` +
          "Next: start the service, then verify it with 'deno task farebox verify'.",
      );
    });
}

/**
 * Restores the backup; returns where the previous database is now, if there was one, and whether a
 * key of `SECRETS_KEY` has proven that the backup is unchanged.
 */
async function restore(
  { file, path: named, keys }: { file: string; path: string; keys: readonly Secret[] },
  { confirm, note }: Terminal,
): Promise<{ kept: string | null; isProven: boolean }> {
  // A URL may contain a password, which is not repeated.
  if (!isDatabaseFile(named) || kvPathFault(named) !== null) {
    throw refused(
      "KV_PATH, or --kv-path, is not a database file. Restore it with its own server's tools.",
    );
  }
  // A link to the database remains one: its target is replaced.
  const path = lock(named);
  if (path === null) {
    throw refused(`${named} is in use by a running service. Stop it first. Nothing was changed.`);
  }
  const ready = `${path}.restoring`;
  try {
    const { seal, sum } = await copyChecked(file, ready);
    const proven = isProven(seal, sum, keys);
    if (!proven && seal.proof !== null && keys.length > 0) throw notProven(file);
    checkDatabase(ready, file);
    note(`${file} is complete${proven ? ", and as the service made it" : ""}.`);
    if (!proven) note(unproven(seal));
    const old = existsSync(path) || existsSync(`${path}-wal`);
    if (old) await confirm(`Replace the database ${path}? It is kept beside the new one.`);
    if (existsSync(path)) await giveSameOwner(path, ready);
    const kept = old ? await keepAside(path) : null;
    restrictDatabase(path);
    await Deno.rename(ready, path);
    await syncFolder(path);
    await recordRestore(path, file).catch((error) =>
      note(`The audit trail does not record this restore: ${error.message}`)
    );
    return { kept, isProven: proven };
  } finally {
    await removeIfThere(ready);
  }
}

function notProven(file: string): Failure {
  return refused(
    `${file} was changed after it was made, or was made with another SECRETS_KEY. Nothing was ` +
      "changed here. With the SECRETS_KEY of its time, alone or in a list with others, it can be " +
      "restored; to restore it unproven, run this without SECRETS_KEY.",
  );
}

/** What is not known about a backup that no key has proven. */
function unproven({ proof }: Seal): string {
  const why = proof === null
    ? "It was made by version 0.9.0, or without SECRETS_KEY, and so contains no proof"
    : "SECRETS_KEY is not set here";
  return `${why}: it is not damaged, but that nobody has changed it is not proven.`;
}

/** Adds a row to the instance's audit trail in the restored database. */
async function recordRestore(path: string, file: string): Promise<void> {
  using database = await Deno.openKv(path);
  const deps = { id: createIds(Date.now, Math.random), clock: { now: Date.now } };
  const by: AuditActor = { actor: { type: "operator", id: "operator" }, via: "command" };
  const detail = { file: basename(file) };
  const auditAction = { by, action: "backup.restored", target: "all", detail } as const;
  const row = auditRow(deps, null, auditAction);
  await denoKv(database).atomic({ ...emptyWrite(), sets: [row] });
}

function lock(path: string): string | null {
  try {
    return lockDatabase(path);
  } catch (error) {
    throw refused(`${path} cannot be locked: ${error instanceof Error ? error.message : error}`);
  }
}

/** Copies the backup without its seal, which it returns, verifying it on the way. */
async function copyChecked(from: string, to: string): Promise<ReturnType<SealReader["end"]>> {
  const source = await Deno.open(from).catch((error) => {
    throw refused(`${from} cannot be read: ${error.message}`);
  });
  if ((await source.stat()).isDirectory) throw refused(`${from} cannot be read: it is a folder.`);
  // A killed run may have left one; no other is running, since this one has the lock.
  await removeIfThere(to);
  using target = await createFile(to);
  const seal = new SealReader();
  for await (const piece of source.readable) {
    await writeAll(target, seal.add(piece), to);
  }
  const ended = seal.end(from);
  await target.sync();
  return ended;
}

/** The owner of the previous database, as whom the service runs, owns the new one. */
async function giveSameOwner(from: string, to: string): Promise<void> {
  const [before, after] = [await Deno.stat(from), await Deno.stat(to)];
  try {
    if (before.mode !== null) await Deno.chmod(to, before.mode & 0o700);
    if (before.uid !== after.uid || before.gid !== after.gid) {
      await Deno.chown(to, before.uid, before.gid);
    }
  } catch {
    throw refused(
      `The restored file would not belong to the owner of ${from}. Run it as the owner of ` +
        `${from}, or as root. Nothing was changed.`,
    );
  }
}

/**
 * Gives the current database a second name, so that it still exists under its own until the new one
 * replaces it in one step. Its WAL file must be gone by then: SQLite would take it for the new
 * one's, and damage that.
 */
async function keepAside(path: string): Promise<string> {
  const kept = `${path}.before-restore-${new Date().toISOString().replace(/[:.]/g, "-")}`;
  if (foldWal(path)) {
    await Deno.link(path, kept);
    return kept;
  }
  // SQLite cannot open it: its files are kept as they are, together.
  for (const end of ["", "-shm", "-wal"]) {
    if (existsSync(path + end)) await Deno.rename(path + end, kept + end);
  }
  return kept;
}

/** Moves the WAL file's content into the database, as its next start would; false if it cannot. */
function foldWal(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    const database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    // The last one to close a database removes both companion files.
    database.close();
  } catch {
    return false;
  }
  return !existsSync(`${path}-wal`);
}

async function removeIfThere(path: string): Promise<void> {
  await Deno.remove(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}
