import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Command } from "commander";
import { isDatabaseFile } from "../../src/config.ts";
import { lockDatabase } from "../../src/platform/database_lock.ts";
import { checkDatabase, SealReader } from "./backup_file.ts";
import { type Given, openTerminal, type Terminal } from "./context.ts";
import { refused } from "./failure.ts";
import { createFile, syncFolder, writeAll } from "./output_file.ts";
import { openEnvironment } from "./settings.ts";

const notes = `
Stop the service first, and run this as its user; it needs no network. The present database is kept beside
the new one, as KV_PATH.before-restore-TIME. What happened after the backup is not in it: money
that moved since then moves back, and deliveries that were pending are sent again.`;

/** `farebox restore` */
export function addRestore(program: Command): void {
  program.command("restore <file>")
    .description("put a backup in the place of the database, while the service is stopped")
    .option("--kv-path <path>", "the database; else KV_PATH, else data/farebox.kv")
    .addHelpText("after", notes)
    .action(async (file: string, options: { kvPath?: string }) => {
      const lookup = openEnvironment();
      const path = options.kvPath ?? lookup("KV_PATH") ?? "data/farebox.kv";
      const terminal = openTerminal(program.opts<Given>());
      const kept = await restore({ file, path }, terminal);
      const beside = kept === null ? "" : `\nThe one before it is ${kept}.`;
      terminal.print(
        { restored: path, from: file, kept },
        `${path} is what ${file} holds.${beside}\n` +
          "Next: start the service, then check it with 'deno task verify-ledger'.",
      );
    });
}

/** Puts the backup in its place; gives where the database before it is now, if there was any. */
async function restore(
  { file, path: named }: { file: string; path: string },
  { confirm, note }: Terminal,
): Promise<string | null> {
  if (!isDatabaseFile(named)) {
    throw refused(`${named} is no database file: restore it with its own server's means.`);
  }
  // A link to the database stays one: what it leads to is what is put in place.
  const path = lock(named);
  if (path === null) {
    throw refused(`${named} is in use by a running service: stop it first. Nothing was touched.`);
  }
  const ready = `${path}.restoring`;
  try {
    await copyChecked(file, ready);
    checkDatabase(ready, file);
    note(`${file} is whole.`);
    const old = existsSync(path) || existsSync(`${path}-wal`);
    if (old) await confirm(`Put it in the place of the database ${path}, which is kept?`);
    if (existsSync(path)) await giveSameOwner(path, ready);
    const kept = old ? await keepAside(path) : null;
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

/** Copies what the backup holds, without its seal, checking it on the way. */
async function copyChecked(from: string, to: string): Promise<void> {
  const source = await Deno.open(from).catch((error) => {
    throw refused(`${from} cannot be read: ${error.message}`);
  });
  if ((await source.stat()).isDirectory) throw refused(`${from} cannot be read: it is a folder.`);
  // A run that was killed may have left one; no other runs now, since this one has the lock.
  await removeIfThere(to);
  using target = await createFile(to);
  const seal = new SealReader();
  for await (const piece of source.readable) {
    await writeAll(target, seal.add(piece), to);
  }
  seal.end(from);
  await target.sync();
}

/** Whoever could read the one before, and that is the service, can read the new one. */
async function giveSameOwner(from: string, to: string): Promise<void> {
  const [before, after] = [await Deno.stat(from), await Deno.stat(to)];
  try {
    if (before.mode !== null) await Deno.chmod(to, before.mode & 0o777);
    if (before.uid !== after.uid || before.gid !== after.gid) {
      await Deno.chown(to, before.uid, before.gid);
    }
  } catch {
    throw refused(
      `What is restored would not be its owner's, who has ${from} now: run it as the owner of ` +
        `${from}, or as root. Nothing was touched.`,
    );
  }
}

/**
 * Gives the present database a second name, so that until the new one takes its place, in one step,
 * it is still there under its own. Its WAL file must be gone by then: SQLite would take it for the
 * new one's, and ruin that.
 */
async function keepAside(path: string): Promise<string> {
  const kept = `${path}.before-restore-${new Date().toISOString().replace(/[:.]/g, "-")}`;
  if (foldWal(path)) {
    await Deno.link(path, kept);
    return kept;
  }
  // Not a database that SQLite can open: its files are kept as they are, together.
  for (const end of ["", "-shm", "-wal"]) {
    if (existsSync(path + end)) await Deno.rename(path + end, kept + end);
  }
  return kept;
}

/** Moves what is in the WAL file into the database, as its next start would; false if it cannot. */
function foldWal(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    const database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    // The last one to close a database removes both of its companions.
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
