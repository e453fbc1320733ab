import type { Command } from "commander";
import { kvPathFault } from "../../src/config/kv_path.ts";
import { createIds } from "../../src/base/ids.ts";
import { type AuditActor, auditRow } from "../../src/projects/audit.ts";
import { emptyWrite, type Kv } from "../../src/store/kv.ts";
import { isPostgres, parsePostgres } from "../../src/config/postgres_address.ts";
import { Secret } from "../../src/base/secret.ts";
import { isDatabaseFile } from "../../src/config/config.ts";
import { createPrivateFile, restrictDatabase } from "../../src/platform/database_files.ts";
import { isNewDatabase, lockDatabase } from "../../src/platform/database_lock.ts";
import { openStore, type Store } from "../../src/platform/stores.ts";
import { type Given, openTerminal } from "./context.ts";
import { copyRows } from "./copy_rows.ts";
import { findProjectRows } from "./project_rows.ts";
import { refused, usage } from "./failure.ts";
import { readSecretFile } from "./input.ts";

const notes = `
A store is the path of a file, the URL of a PostgreSQL database, or that of a KV server (with
DENO_KV_ACCESS_TOKEN). Stop the service first: what it writes meanwhile may be missing. The target
must be empty. An interrupted copy goes on where it stopped when the same command is run again; until
it is complete no service starts on the target. At the end every row is compared, and the audit trail
of the target gets a row.

With --project, one project moves to a store that may have other ones, with its keys, users, entries,
budgets, events and webhooks; both services must have the same SECRETS_KEY. The project stays in the
source: archive it there afterwards, so that only one of the two takes new calls.

The password of a PostgreSQL database is not part of its URL here, since other users of the machine
can read arguments: it comes from PGPASSWORD, or from a file or standard input.`;

interface CopyOptions {
  from: string;
  to: string;
  project?: string;
  fromPasswordFile?: string;
  toPasswordFile?: string;
}

/** `farebox copy` */
export function addCopy(program: Command): void {
  program.command("copy")
    .description("copy the whole database to another store, while the service is stopped")
    .requiredOption("--from <store>", "the database to copy")
    .requiredOption("--to <store>", "a new, empty database")
    .option("--project <project>", "only this project, to a store that may have other ones")
    .option("--from-password-file <file>", "has the password of --from; - is standard input")
    .option("--to-password-file <file>", "has the password of --to; - is standard input")
    .addHelpText("after", notes)
    .action(async (options: CopyOptions) => {
      const { from, to } = options;
      const terminal = openTerminal(program.opts<Given>());
      const [source, target] = await openBoth(options);
      try {
        const stores = { source: source.kv, target: target.kv, from };
        const project = options.project === undefined
          ? {}
          : { project: await findProjectRows(source.kv, options.project) };
        const copied = await copyRows({ ...stores, ...project }, (what, rows) => {
          terminal.progress(() => `${rows} rows ${what}`);
        });
        await recordCopy(target.kv, { project: options.project ?? null, rows: copied.rows });
        terminal.print(
          { from, to, ...copied },
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

/** Adds a row to the trail of what was copied, in the target. */
async function recordCopy(
  target: Kv,
  { project, rows }: { project: string | null; rows: number },
): Promise<void> {
  const deps = { id: createIds(Date.now, Math.random), clock: { now: Date.now } };
  const by: AuditActor = { actor: { type: "operator", id: "operator" }, via: "command" };
  const auditAction = {
    by,
    action: "data.copied",
    target: project ?? "all",
    detail: { rows },
  } as const;
  await target.atomic({ ...emptyWrite(), sets: [auditRow(deps, project, auditAction)] });
}

async function openBoth(options: CopyOptions): Promise<[Store, Store]> {
  const { from, to, fromPasswordFile, toPasswordFile } = options;
  if (fromPasswordFile === "-" && toPasswordFile === "-") {
    throw usage("Only one of the two passwords can come from standard input.");
  }
  const passwords = [
    await passwordOf(from, "--from", fromPasswordFile),
    await passwordOf(to, "--to", toPasswordFile),
  ] as const;
  if (isDatabaseFile(from) && isNewDatabase(from)) {
    throw refused(`${from} has no database. Nothing was changed.`);
  }
  const source = await open(from, passwords[0]);
  try {
    return [source, await open(to, passwords[1])];
  } catch (error) {
    source.kv.close();
    throw error;
  }
}

/**
 * The password of a store; null where it needs none. Throws for an invalid store, whose name is not
 * repeated, and for a password among the arguments.
 */
async function passwordOf(
  store: string,
  option: string,
  file: string | undefined,
): Promise<Secret | null> {
  const fault = kvPathFault(store);
  if (fault !== null) throw usage(`${option} ${fault}.`);
  const fileOption = `${option}-password-file`;
  if (!isPostgres(store)) {
    if (file === undefined) return null;
    throw usage(`${fileOption} is for a PostgreSQL database only.`);
  }
  if (parsePostgres(store).password !== null) {
    throw usage(
      `${option} has a password, which other users of this machine can read. Leave it out, and set ` +
        `PGPASSWORD, or use ${fileOption} FILE, or ${fileOption} - for standard input. Then change ` +
        "the password: it has been seen.",
    );
  }
  const password = file === undefined
    ? Deno.env.get("PGPASSWORD") || null
    : await readSecretFile(file, fileOption);
  return password === null ? null : new Secret(password);
}

/** Opens a store; of a file this process is then the only user. */
async function open(named: string, kvPassword: Secret | null): Promise<Store> {
  const kvPath = isDatabaseFile(named) ? lock(named) : named;
  try {
    return await openStore({ kvPath, kvPassword, deploy: false });
  } catch (error) {
    throw refused(`${named}: ${error instanceof Error ? error.message : error}`);
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
