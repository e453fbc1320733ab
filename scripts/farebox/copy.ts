import type { Command } from "commander";
import { isPostgres, parsePostgres, withoutPassword } from "../../src/base/postgres_address.ts";
import { Secret } from "../../src/base/secret.ts";
import { isDatabaseFile } from "../../src/config.ts";
import { createPrivateFile, restrictDatabase } from "../../src/platform/database_files.ts";
import { isNewDatabase, lockDatabase } from "../../src/platform/database_lock.ts";
import { openStore, type Store } from "../../src/platform/stores.ts";
import { type Given, openTerminal } from "./context.ts";
import { copyRows } from "./copy_rows.ts";
import { refused } from "./failure.ts";

const notes = `
A store is the path of a file, the URL of a PostgreSQL database, or that of a KV server (with
DENO_KV_ACCESS_TOKEN). Stop the service first: what it writes meanwhile may be missing. The target
must be empty. An interrupted copy goes on where it stopped when the same command is run again; until
it is complete no service starts on the target. At the end every row is compared.`;

/** `farebox copy` */
export function addCopy(program: Command): void {
  program.command("copy")
    .description("copy the whole database to another store, while the service is stopped")
    .requiredOption("--from <store>", "the database to copy")
    .requiredOption("--to <store>", "a new, empty database")
    .addHelpText("after", notes)
    .action(async ({ from, to }: { from: string; to: string }) => {
      const terminal = openTerminal(program.opts<Given>());
      const [source, target] = await openBoth(from, to);
      try {
        const stores = { source: source.kv, target: target.kv, from: withoutPassword(from) };
        const copied = await copyRows(stores, (what, rows) => {
          terminal.progress(() => `${rows} rows ${what}`);
        });
        terminal.print(
          { from: withoutPassword(from), to: withoutPassword(to), ...copied },
          `${copied.rows} rows are copied and compared. SHA-256 of all: ${copied.checksum}\n` +
            "Next: set KV_PATH to the new store, start the service, and run " +
            "'deno task farebox verify'.",
        );
      } finally {
        source.kv.close();
        target.kv.close();
      }
    });
}

async function openBoth(from: string, to: string): Promise<[Store, Store]> {
  if (isDatabaseFile(from) && isNewDatabase(from)) {
    throw refused(`${from} has no database. Nothing was changed.`);
  }
  const source = await open(from);
  try {
    return [source, await open(to)];
  } catch (error) {
    source.kv.close();
    throw error;
  }
}

/** Opens a store; of a file this process is then the only user. */
async function open(named: string): Promise<Store> {
  const kvPath = isDatabaseFile(named) ? lock(named) : named;
  const password = isPostgres(kvPath) ? passwordOf(kvPath) : null;
  try {
    return await openStore({
      kvPath,
      kvPassword: password === null ? null : new Secret(password),
      deploy: false,
    });
  } catch (error) {
    throw refused(`${withoutPassword(named)}: ${error instanceof Error ? error.message : error}`);
  }
}

function passwordOf(url: string): string | null {
  try {
    return parsePostgres(url).password;
  } catch (error) {
    throw refused(`The URL ${withoutPassword(url)} ${error instanceof Error ? error.message : ""}`);
  }
}

function lock(named: string): string {
  let path: string | null;
  try {
    path = lockDatabase(named);
  } catch (error) {
    throw refused(`${named} cannot be locked: ${error instanceof Error ? error.message : error}`);
  }
  if (path === null) {
    throw refused(`${named} is in use, by a running service or as both stores. Stop it first.`);
  }
  createPrivateFile(path);
  restrictDatabase(path);
  return path;
}
