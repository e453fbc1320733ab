import { createHash } from "node:crypto";
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { isObject, type JsonObject, parseJson } from "../../src/base/json.ts";
import { formatAmount } from "../../src/base/money.ts";
import { exportPosition } from "../../src/export/kinds.ts";
import type { Api } from "./api.ts";
import type { Context } from "./context.ts";
import { readLinesAfter } from "./continued_lines.ts";
import { Refusal, refused, Unreachable, usage } from "./failure.ts";
import { type ImportFile, type ImportRow, readImportFile } from "./import_file.ts";
import { projectPath, userAddress } from "./paths.ts";

interface ImportOptions {
  format?: "csv" | "jsonl";
  skipBad?: boolean;
  batch?: string;
  dryRun?: boolean;
}

/** Concurrent deposits. */
const concurrency = 16;
const attemptsMax = 6;
const pauseMs = 1_000;
const badShownMax = 100;

const notes = `
FILE is CSV whose first line is user,amount or user,amount,metadata, or JSON lines of
{"user":"ada","amount":"12.50","metadata":{…}}. Amounts are decimal strings.
All lines are validated before any is deposited. The batch, which is named after the file unless
--batch names it, gives each user one opening balance: a run that was interrupted can be repeated,
also with a file that was corrected. A line whose amount differs from the one that its batch has
deposited is refused. New users get no trial credit on top, and no events are sent.`;

/** `farebox import` */
export function addImport(program: Command, open: () => Context): void {
  program.command("import <project> <file>")
    .description("deposit opening balances from a file")
    .addOption(
      new Option("--format <format>", "the format of FILE, if its name does not tell")
        .choices(["csv", "jsonl"]),
    )
    .option("--batch <name>", "the name of the import, if it is not that of FILE")
    .option("--dry-run", "only tell what would be deposited")
    .option("--skip-bad", "deposit the valid lines although there are invalid ones")
    .addHelpText("after", notes)
    .action(async (project: string, path: string, options: ImportOptions) => {
      const context = open();
      const batch = readBatch(options.batch ?? basename(path));
      const file = await readImportFile(path, options.format ?? formatOf(path));
      const currency = await checkProject(context.api, project);
      const { left, before } = await compareWithBooks(context, { project, batch, file });
      tellBad(context, file.bad);
      if (file.bad.length > 0 && !options.skipBad) {
        throw refused(`Nothing was deposited: ${bad(file)}. Correct them, or use --skip-bad.`);
      }
      const what = `${sumOf(left)} ${currency} to ${left.length} users of ${project}`;
      const already = before.length > 0
        ? ` ${sumOf(before)} ${currency} to ${before.length} users were deposited before.`
        : "";
      const more = { empty: file.empty, skipped: file.bad.length };
      if (options.dryRun) {
        const result = { wouldBook: left.length, sum: sumOf(left), before: before.length, ...more };
        return context.print(result, () => `Would deposit ${what}.${already}`);
      }
      await context.confirm(`Deposit ${what}?${already}`);
      const done = await bookAll(context, { project, batch, rows: left });
      done.before += before.length;
      context.print(
        { ...done, ...more },
        () =>
          `${done.booked} deposited, ${done.before} deposited before, ` +
          `${file.empty} with nothing to deposit` +
          (file.bad.length > 0 ? `, ${file.bad.length} invalid lines skipped` : ""),
      );
      if (done.failed.length > 0) {
        throw refused(
          `${done.failed.length} lines were refused. Run it again to deposit the rest.`,
        );
      }
    });
}

const sumOf = (rows: readonly ImportRow[]) =>
  formatAmount(rows.reduce((total, { amount }) => total + amount, 0n));

/** Throws for a name that no idempotency key can hold. */
function readBatch(name: string): string {
  if (/^[\x21-\x7e]{1,100}$/.test(name)) return name;
  throw usage(`--batch takes 1 to 100 visible ASCII characters, not '${name}'.`);
}

/** The key of a user's deposit in a batch. Any user's id fits. */
function keyOf(batch: string, user: string): string {
  const hash = createHash("sha256").update(user).digest("hex").slice(0, 32);
  return `import:${batch}:${hash}`;
}

/**
 * Splits the lines into those that this batch has deposited and those that are left. A line whose
 * amount differs from what was deposited is added to the bad ones.
 */
async function compareWithBooks(
  { api, note }: Context,
  { project, batch, file }: { project: string; batch: string; file: ImportFile },
): Promise<{ left: ImportRow[]; before: ImportRow[] }> {
  const booked = new Map<string, string>();
  const path = `${projectPath(project)}/export`;
  const pages = readLinesAfter({
    what: "entries",
    read: (after) => api.raw(path, { query: { what: "entries", after } }),
    positionOf: (line) => exportPosition("entries", entryOf(line)),
    note,
  });
  for await (const lines of pages) {
    for (const line of lines) {
      // Most entries need not be parsed.
      if (!line.includes(`import:`)) continue;
      const { idempotencyKey, amount } = entryOf(line);
      if (idempotencyKey !== null) booked.set(String(idempotencyKey), String(amount));
    }
  }
  const [left, before]: [ImportRow[], ImportRow[]] = [[], []];
  for (const row of file.rows) {
    const earlier = booked.get(keyOf(batch, row.user));
    if (earlier === undefined) left.push(row);
    else if (earlier === formatAmount(row.amount)) before.push(row);
    else {
      const reason = `${earlier} was deposited for ${row.user} by this batch, ` +
        `not ${formatAmount(row.amount)}`;
      file.bad.push({ line: row.line, reason });
    }
  }
  file.bad.sort((one, other) => one.line - other.line);
  return { left, before };
}

function entryOf(line: string): JsonObject {
  const entry = parseJson(line);
  if (isObject(entry)) return entry;
  throw new Unreachable("The server is not Farebox: it sent no entries.");
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
  /** By an earlier run of the batch. */
  before: number;
  failed: { line: number; reason: string }[];
}

interface Batch {
  project: string;
  batch: string;
  rows: readonly ImportRow[];
}

async function bookAll(
  context: Context,
  { project, batch, rows }: Batch,
): Promise<Booked> {
  const done: Booked = { booked: 0, before: 0, failed: [] };
  const startedAt = performance.now();
  const left = rows.values();
  const worker = async () => {
    // One iterator for all workers: each line is taken by one of them.
    for (const row of left) {
      try {
        const replayed = await bookOne(context.api, project, { row, batch });
        done[replayed ? "before" : "booked"]++;
      } catch (error) {
        if (!(error instanceof Refusal) || isForAll(error)) throw error;
        done.failed.push({ line: row.line, reason: error.message });
        context.note(`line ${row.line}: ${error.message}`);
      }
      context.progress(() => {
        const count = done.booked + done.before;
        const rate = Math.round(count / ((performance.now() - startedAt) / 1000));
        return `${count} of ${rows.length}, ${rate} a second`;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, worker));
  const broken = ends.find((end) => end.status === "rejected");
  if (!broken) return done;
  const { reason } = broken;
  const state = `${done.booked + done.before} of ${rows.length} lines are deposited. ` +
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
  { row, batch }: { row: ImportRow; batch: string },
): Promise<boolean> {
  const { user, amount, metadata } = row;
  const { path, query } = userAddress(project, user);
  for (let attempt = 1;; attempt++) {
    try {
      const response = await api.raw(`${path}/deposit`, {
        query,
        headers: { "idempotency-key": keyOf(batch, user) },
        body: {
          ...{ amount: formatAmount(amount), reason: "opening" },
          ...(metadata ? { metadata } : {}),
        },
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
