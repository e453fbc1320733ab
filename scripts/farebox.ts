/**
 * `deno task farebox …`: the operator's commands, over the admin API of a running service.
 * `--help` says which there are.
 */
import { Command, CommanderError } from "commander";
import { addBackup } from "./farebox/backup.ts";
import { type Context, type Given, openContext } from "./farebox/context.ts";
import { addExport } from "./farebox/export.ts";
import { exitCodes, Failure } from "./farebox/failure.ts";
import { addImport } from "./farebox/import.ts";
import { addKeys } from "./farebox/keys.ts";
import { addMoney } from "./farebox/money.ts";
import { addProjects } from "./farebox/projects.ts";
import { addRestore } from "./farebox/restore.ts";
import { addSecrets } from "./farebox/secrets.ts";
import { openEnvironment } from "./farebox/settings.ts";
import { addUsers } from "./farebox/users.ts";
import { addVerify } from "./farebox/verify.ts";

/** One group of commands. `open` gives what they work with, once the options are known. */
export type AddCommands = (program: Command, open: () => Context) => void;

const groups: readonly AddCommands[] = [
  addProjects,
  addKeys,
  addUsers,
  addMoney,
  addExport,
  addImport,
  addBackup,
  addRestore,
  addVerify,
  addSecrets,
];

const notes = `
Settings, from the environment or from .env:
  ADMIN_KEY    the service's own, needed by all commands but restore
  FAREBOX_URL  where the service is; else http://localhost:PORT, else BASE_URL

Results go to standard output, everything else to standard error. With --json a result is one
JSON document, and a list is one document a line.

Exit codes:
  0  done
  1  refused or failed; for 'verify': something is wrong
  2  the command was not understood
  3  the service does not answer, or cannot now`;

/** All commands. */
export function createProgram(): Command {
  const program = new Command("farebox")
    .description("Operate a running Farebox, through its admin API.")
    .option("--url <address>", "where the service is")
    .option("--json", "print for programs")
    .option("--yes", "do not ask before what cannot be undone")
    .addHelpText("after", notes)
    .showHelpAfterError("(--help says what there is)")
    .exitOverride();
  const open = () => openContext(openEnvironment(), program.opts<Given>());
  for (const add of groups) add(program, open);
  return program;
}

/** Runs one command; gives what the process ends with. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    // Commander has said by then what it did not understand, or printed the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    return error.exitCode;
  }
}

if (import.meta.main) Deno.exit(await run(Deno.args));
