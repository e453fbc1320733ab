import { type Command, Option } from "commander";
import { formatAmount } from "../../src/base/money.ts";
import type { Api } from "./api.ts";
import type { Context } from "./context.ts";
import { Refusal, refused, Unreachable, usage } from "./failure.ts";
import { type ImportFile, type ImportRow, readImportFile } from "./import_file.ts";
import { projectPath, userAddress } from "./paths.ts";

interface ImportOptions {
  format?: "csv" | "jsonl";
  skipBad?: boolean;
}

/** Concurrent deposits. */
const concurrency = 16;
const attemptsMax = 6;
const pauseMs = 1_000;
const badShownMax = 100;

const notes = `
FILE is CSV whose first line is user,amount or user,amount,metadata, or JSON lines of
{"user":"ada","amount":"12.50","metadata":{…}}. Amounts are decimal strings.
All lines are validated before any is deposited. An interrupted run can be repeated: each line of a
file is deposited once. A changed file counts as a different one: put skipped and corrected lines
into a file of their own.`;

/** `farebox import` */
export function addImport(program: Command, open: () => Context): void {
  program.command("import <project> <file>")
    .description("deposit opening balances from a file")
    .addOption(
      new Option("--format <format>", "the format of FILE, if its name does not tell")
        .choices(["csv", "jsonl"]),
    )
    .option("--skip-bad", "deposit the valid lines although there are invalid ones")
    .addHelpText("after", notes)
    .action(async (project: string, path: string, options: ImportOptions) => {
      const context = open();
      const file = await readImportFile(path, options.format ?? formatOf(path));
      tellBad(context, file.bad);
      if (file.bad.length > 0 && !options.skipBad) {
        throw refused(`Nothing was deposited: ${bad(file)}. Correct them, or use --skip-bad.`);
      }
      const currency = await checkProject(context.api, project);
      const sum = file.rows.reduce((total, { amount }) => total + amount, 0n);
      const what = `${formatAmount(sum)} ${currency} to ${file.rows.length} users of ${project}`;
      await context.confirm(`Deposit ${what}?`);
      const done = await bookAll(context, project, file);
      const { booked, before, failed } = done;
      const result = { ...done, empty: file.empty, skipped: file.bad.length };
      context.print(
        result,
        () =>
          `${booked} deposited, ${before} deposited before, ${file.empty} with nothing to deposit` +
          (file.bad.length > 0 ? `, ${file.bad.length} invalid lines skipped` : ""),
      );
      if (failed.length > 0) {
        throw refused(`${failed.length} lines were refused. Run it again to deposit the rest.`);
      }
    });
}

function formatOf(path: string): "csv" | "jsonl" {
  if (/\.csv$/i.test(path)) return "csv";
  if (/\.(jsonl|ndjson)$/i.test(path)) return "jsonl";
  throw usage(`The format of ${path} is unknown. Use --format csv or --format jsonl.`);
}

function bad({ bad }: ImportFile): string {
  return bad.length === 1 ? "1 line is invalid" : `${bad.length} lines are invalid`;
}

function tellBad({ note }: Context, lines: ImportFile["bad"]): void {
  for (const { line, reason } of lines.slice(0, badShownMax)) note(`line ${line}: ${reason}`);
  if (lines.length > badShownMax) note(`… and ${lines.length - badShownMax} more`);
}

/** Returns the project's currency. Throws where all deposits would be refused. */
async function checkProject(api: Api, id: string): Promise<string> {
  const { project } = await api.json(projectPath(id));
  if (project.mode !== "default") {
    throw refused(`In ${id}, users pay into their own wallets: no one else can deposit.`);
  }
  if (project.status !== "active") throw refused(`${id} is archived and takes no deposits.`);
  return project.currency;
}

interface Booked {
  booked: number;
  /** By an earlier run of the same file. */
  before: number;
  failed: { line: number; reason: string }[];
}

async function bookAll(context: Context, project: string, file: ImportFile): Promise<Booked> {
  const done: Booked = { booked: 0, before: 0, failed: [] };
  const startedAt = performance.now();
  const left = file.rows.values();
  const worker = async () => {
    // One iterator for all workers: each line is taken by one of them.
    for (const row of left) {
      try {
        const replayed = await bookOne(context.api, project, { row, fileId: file.id });
        done[replayed ? "before" : "booked"]++;
      } catch (error) {
        if (!(error instanceof Refusal) || isForAll(error)) throw error;
        done.failed.push({ line: row.line, reason: error.message });
        context.note(`line ${row.line}: ${error.message}`);
      }
      context.progress(() => {
        const count = done.booked + done.before;
        const rate = Math.round(count / ((performance.now() - startedAt) / 1000));
        return `${count} of ${file.rows.length}, ${rate} a second`;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, worker));
  const broken = ends.find((end) => end.status === "rejected");
  if (!broken) return done;
  const { reason } = broken;
  const state = `${done.booked + done.before} of ${file.rows.length} lines are deposited. ` +
    "Run it again to deposit the rest.";
  if (reason instanceof Unreachable) throw new Unreachable(`${reason.message} ${state}`);
  throw reason instanceof Refusal ? refused(`${reason.message} ${state}`) : reason;
}

/** The next line would fail in the same way, unless the error concerns only this line's user. */
const isForAll = ({ status, code }: Refusal) =>
  [401, 403, 404].includes(status) && code !== "user_being_forgotten";

/** Deposits one line; true when an earlier run had. Repeating the call deposits nothing twice. */
async function bookOne(
  api: Api,
  project: string,
  { row, fileId }: { row: ImportRow; fileId: string },
): Promise<boolean> {
  const { line, user, amount, metadata } = row;
  const { path, query } = userAddress(project, user);
  for (let attempt = 1;; attempt++) {
    try {
      const response = await api.raw(`${path}/deposit`, {
        query,
        headers: { "idempotency-key": `import-${fileId}-${line}` },
        body: { amount: formatAmount(amount), ...(metadata ? { metadata } : {}) },
      });
      await response.body?.cancel();
      return response.headers.get("idempotent-replayed") === "true";
    } catch (error) {
      const passes = error instanceof Unreachable ||
        (error instanceof Refusal && (error.status === 429 || error.status >= 500));
      if (!passes || attempt >= attemptsMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs * attempt));
    }
  }
}
