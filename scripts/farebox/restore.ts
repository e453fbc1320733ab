import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Command } from "commander";
import { kvPathFault } from "../../src/base/kv_path.ts";
import { isDatabaseFile } from "../../src/config.ts";
import { lockDatabase } from "../../src/platform/database_lock.ts";
import { restrictDatabase } from "../../src/platform/database_files.ts";
import { checkDatabase, SealReader } from "./backup_file.ts";
import { type Given, openTerminal, type Terminal } from "./context.ts";
import { refused } from "./failure.ts";
import { createFile, syncFolder, writeAll } from "./output_file.ts";
import { openEnvironment } from "./settings.ts";

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
      const kept = await restore({ file, path }, terminal);
      const beside = kept === null ? "" : `\nThe previous database is ${kept}.`;
      terminal.print(
        { restored: path, from: file, kept },
        `${path} is restored from ${file}.${beside}\n` +
          "Next: start the service, then verify it with 'deno task farebox verify'.",
      );
    });
}

/** Restores the backup; returns where the previous database is now, if there was one. */
async function restore(
  { file, path: named }: { file: string; path: string },
  { confirm, note }: Terminal,
): Promise<string | null> {
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
    await copyChecked(file, ready);
    checkDatabase(ready, file);
    note(`${file} is complete.`);
    const old = existsSync(path) || existsSync(`${path}-wal`);
    if (old) await confirm(`Replace the database ${path}? It is kept beside the new one.`);
    if (existsSync(path)) await giveSameOwner(path, ready);
    const kept = old ? await keepAside(path) : null;
    restrictDatabase(path);
    await Deno.rename(ready, path);
    await syncFolder(path);
    return kept;
  } finally {
    await removeIfThere(ready);
  }
}

function lock(path: string): string | null {
  try {
    return lockDatabase(path);
  } catch (error) {
    throw refused(`${path} cannot be locked: ${error instanceof Error ? error.message : error}`);
  }
}

/** Copies the backup without its seal, verifying it on the way. */
async function copyChecked(from: string, to: string): Promise<void> {
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
  seal.end(from);
  await target.sync();
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
