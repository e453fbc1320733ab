/**
 * `deno task farebox …`: the operator's commands, over the admin API of a running service.
 * `--help` lists them.
 */
import { Command, CommanderError, Option } from "commander";
import { version } from "../src/base/version.ts";
import { addArchive } from "./farebox/archive.ts";
import { addBackup } from "./farebox/backup.ts";
import { addCopy } from "./farebox/copy.ts";
import { type Context, type Given, openContext } from "./farebox/context.ts";
import { addExport } from "./farebox/export.ts";
import { exitCodes, Failure } from "./farebox/failure.ts";
import { addImport } from "./farebox/import.ts";
import { addStatement } from "./farebox/statement.ts";
import { addKeys } from "./farebox/keys.ts";
import { addMoney } from "./farebox/money.ts";
import { addPrices } from "./farebox/prices.ts";
import { addProjects } from "./farebox/projects.ts";
import { addRestore } from "./farebox/restore.ts";
import { addSecrets } from "./farebox/secrets.ts";
import { addStripe } from "./farebox/stripe.ts";
import { openEnvironment } from "./farebox/settings.ts";
import { addUpstreams } from "./farebox/upstreams.ts";
import { addUsers } from "./farebox/users.ts";
import { addVerify } from "./farebox/verify.ts";
import { addWallets } from "./farebox/wallets.ts";
import { addWatch } from "./farebox/watch.ts";
import { addWebhooks } from "./farebox/webhooks.ts";

/** Adds a group of commands. `open` returns their context, once the options are parsed. */
type AddCommands = (program: Command, open: () => Context) => void;

const groups: readonly AddCommands[] = [
  addProjects,
  addKeys,
  addUpstreams,
  addUsers,
  addWallets,
  addMoney,
  addPrices,
  addExport,
  addImport,
  addStatement,
  addWatch,
  addArchive,
  addBackup,
  addRestore,
  addCopy,
  addVerify,
  addSecrets,
  addStripe,
  addWebhooks,
];

const notes = `
Settings, from the environment or from .env:
  ADMIN_KEY    the service's admin key, needed by all commands except restore, copy and
               'archive verify'
  FAREBOX_URL  the URL of the service, as --service; default: http://localhost:PORT, or BASE_URL

A command that calls a service first asks it for /healthz, and sends no key unless Farebox answers.

Results go to standard output, everything else to standard error. With --json a result is one
JSON document, and a list is one document per line.

Exit codes:
  0  success
  1  refused or failed; for 'verify': faults were found
  2  invalid usage
  3  the service does not respond, or cannot at the moment`;

/** Creates all commands. */
export function createProgram(): Command {
  const program = new Command("farebox")
    .description("Operate a running Farebox, through its admin API.")
    .version(version, "--version", "print the version")
    .option("--service <url>", "the URL of the service")
    .option("--json", "print JSON, for programs")
    .option("--yes", "do not ask for confirmation")
    .addHelpText("after", notes)
    .showHelpAfterError("(run with --help for usage)")
    .exitOverride();
  const open = () => openContext(openEnvironment(), program.opts<Given>());
  for (const add of groups) add(program, open);
  for (const command of commandsBelow(program)) acceptUrl(command, program);
  return program;
}

/** The commands that do something. */
function commandsBelow(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(commandsBelow);
}

/** `--url` is `--service` by its former name, unless the command itself has another URL. */
function acceptUrl(command: Command, program: Command): void {
  if (command.options.some(({ long }) => long === "--url")) return;
  command.addOption(new Option("--url <url>", "the URL of the service").hideHelp());
  command.on("option:url", (url: string) => program.setOptionValue("service", url));
}

/** Runs one command; returns the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    // Commander has already printed the error, or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    return error.exitCode;
  }
}

if (import.meta.main) Deno.exit(await run(Deno.args));
