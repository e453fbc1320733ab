import { join } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { lineHash } from "../../src/archive/line.ts";
import { removedPerCall } from "../../src/archive/schema.ts";
import { timeOfId } from "../../src/base/ids.ts";
import { withoutCallersId } from "../../src/ledger/erase_entries.ts";
import { decodeEntry } from "../../src/ledger/store.ts";
import { type Context, type Given, openTerminal } from "./context.ts";
import { refused } from "./failure.ts";
import { projectPath } from "./paths.ts";
import { readLinesAfter } from "./continued_lines.ts";
import { openSealed, type SealedEntry, verifySealed, writeSealed } from "./sealed_file.ts";

const notes = `
Charges of responses that are older than so many months move to sealed files: one for each month, in
DIR, named by project and month. Each account keeps one entry with their sum; deposits, charges and
refunds by request stay. A file is complete and verified before anything is removed. An interrupted
run goes on when the same command is run again: a file whose entries are not all removed yet is named
'.pending'. Keep the files as safe as a backup: nothing else has their entries.`;

/** `farebox archive` */
export function addArchive(program: Command, open: () => Context): void {
  const group = program.command("archive")
    .description("move old charges of responses to sealed files, and verify those");
  group.command("create <project>")
    .description("write sealed files, and remove what they have from the database")
    .requiredOption("--months <n>", "entries older than so many months", readMonths)
    .requiredOption("--out <dir>", "the folder for the files")
    .addHelpText("after", notes)
    .action((project: string, options: { months: number; out: string }) =>
      create(open(), project, options)
    );
  group.command("verify <files...>")
    .description("verify sealed files, without a service; exits with 1 at any fault")
    .action(async (files: string[]) => {
      const { printRows } = openTerminal(program.opts<Given>());
      for (const file of files) {
        const { head: { project, before }, seal } = await verifySealed(file);
        printRows([{ file, project, before, ...seal }], {
          FILE: (row) => row.file,
          PROJECT: (row) => row.project,
          BEFORE: (row) => row.before,
          ENTRIES: (row) => row.entries,
          DELTA: (row) => row.delta,
        });
      }
    });
  group.command("erase <files...>")
    .description("replace a user's id in sealed files by the pseudonym of their erasure")
    .requiredOption("--user <user>", "the user who was erased")
    .requiredOption("--pseudonym <name>", "the name that 'users forget' has printed")
    .action(async (files: string[], who: { user: string; pseudonym: string }) => {
      const { print } = openTerminal(program.opts<Given>());
      for (const file of files) {
        const entries = await erase(file, who);
        print({ file, entries }, `${entries} entries of ${file} name ${who.pseudonym} now.`);
      }
    });
}

function readMonths(text: string): number {
  const months = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (months >= 1) return months;
  throw new InvalidArgumentError("It must be a number of months, at least 1.");
}

interface Totals {
  files: string[];
  entries: number;
  removed: number;
  stayed: number;
}

async function create(
  context: Context,
  project: string,
  { months, out }: { months: number; out: string },
): Promise<void> {
  await Deno.mkdir(out, { recursive: true, mode: 0o700 });
  const totals: Totals = { files: [], entries: 0, removed: 0, stayed: 0 };
  for (const path of pendingFiles(out, project)) await finish(context, { project, path, totals });
  const before = await monthsAgo(context, months);
  const { project: settings } = await context.api.json(projectPath(project));
  const head = {
    farebox: "sealed entries" as const,
    version: 1 as const,
    project,
    currency: String(settings.currency),
    before: before.toISOString(),
  };
  const source = new Months(archivable(context, project, head.before));
  for (let month = await source.next(); month !== null; month = await source.next()) {
    const path = pendingPath(out, `${project}-${month}`);
    const { entries } = await writeSealed(path, head, source.entriesOf(month));
    totals.entries += entries;
    context.note(`${entries} entries of ${month} are sealed.`);
  }
  for (const path of pendingFiles(out, project)) await finish(context, { project, path, totals });
  context.print(
    totals,
    `${totals.removed} entries were removed; ${totals.stayed} stay. Files: ${
      totals.files.join(", ") || "none"
    }`,
  );
}

/** The start of a month, by the service's clock. */
async function monthsAgo({ api }: Context, months: number): Promise<Date> {
  const response = await api.raw("/healthz");
  await response.body?.cancel();
  const now = new Date(response.headers.get("date") ?? Date.now());
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1));
}

async function* archivable(
  { api, note, progress }: Context,
  project: string,
  before: string,
): AsyncGenerator<SealedEntry> {
  const path = `${projectPath(project)}/archive/entries`;
  let entries = 0;
  const lines = readLinesAfter({
    what: "entries",
    read: (after) => api.raw(path, { query: { before, after } }),
    positionOf: (line) => decodeEntry(new TextEncoder().encode(line)).id,
    note,
  });
  for await (const page of lines) {
    for (const line of page) yield { line, entry: decodeEntry(new TextEncoder().encode(line)) };
    entries += page.length;
    progress(() => `${entries} entries read`);
  }
}

/** Divides entries in order of their ids into months. */
class Months {
  readonly #entries: AsyncGenerator<SealedEntry>;
  #first: SealedEntry | null = null;

  constructor(entries: AsyncGenerator<SealedEntry>) {
    this.#entries = entries;
  }

  /** The month of the next entry; null at the end. */
  async next(): Promise<string | null> {
    this.#first ??= (await this.#entries.next()).value ?? null;
    return this.#first && monthOf(this.#first);
  }

  /** The entries of that month, from the next one on. */
  async *entriesOf(month: string): AsyncGenerator<SealedEntry> {
    while (await this.next() === month && this.#first) {
      yield this.#first;
      this.#first = null;
    }
  }
}

function monthOf({ entry }: SealedEntry): string {
  return new Date(timeOfId(entry.id)).toISOString().slice(0, 7);
}

const ending = ".jsonl.gz";
const pendingEnding = `${ending}.pending`;

function pendingFiles(folder: string, project: string): string[] {
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
  return names.filter((name) => name.startsWith(`${project}-`) && name.endsWith(pendingEnding))
    .sort().map((name) => join(folder, name));
}

/** A name that no file has: entries that were recorded late come to a further file of a month. */
function pendingPath(folder: string, name: string): string {
  const names = new Set([...Deno.readDirSync(folder)].map((entry) => entry.name));
  for (let number = 1;; number++) {
    const whole = number === 1 ? name : `${name}-${number}`;
    if (names.has(whole + ending) || names.has(whole + pendingEnding)) continue;
    return join(folder, whole + pendingEnding);
  }
}

/** Removes what a file has, and gives it its final name. */
async function finish(
  context: Context,
  { project, path, totals }: { project: string; path: string; totals: Totals },
): Promise<void> {
  const { head, seal } = await verifySealed(path);
  if (head.project !== project) throw refused(`${path} is of another project: ${head.project}.`);
  const { removed, stayed } = await removeEntries(context, path, { ...head, ...seal });
  const final = path.slice(0, -".pending".length);
  await Deno.rename(path, final);
  totals.files.push(final);
  totals.removed += removed;
  totals.stayed += stayed;
}

/** At least so many of the entries of a call are new; the others were left by earlier calls. */
const newPerCall = 100;

async function removeEntries(
  { api, progress, note }: Context,
  path: string,
  { project, before, sha256 }: { project: string; before: string; sha256: string },
): Promise<{ removed: number; stayed: number }> {
  const url = `${projectPath(project)}/archive/entries`;
  let removed = 0;
  let changed = 0;
  type Named = [id: string, hash: string];
  /** Sends entries; returns those that are left for now. */
  const send = async (entries: readonly Named[]): Promise<Named[]> => {
    const answer = await api.json(url, { body: { before, sha256, entries } });
    removed += answer.removed;
    changed += answer.changed.length;
    progress(() => `${removed} entries removed`);
    const left = new Set<string>(answer.left);
    return entries.filter(([id]) => left.has(id));
  };
  let later: Named[] = [];
  let chunk: Named[] = [];
  const { entries } = await openSealed(path);
  for await (const { line, entry } of entries) {
    chunk.push([entry.id, lineHash(line)]);
    if (chunk.length < removedPerCall) continue;
    const left = await send(chunk);
    // They follow entries with later ids, which are mostly the next ones.
    chunk = left.slice(newPerCall - removedPerCall);
    later.push(...left.slice(0, left.length - chunk.length));
  }
  later.push(...chunk);
  for (let before = -1; later.length > 0 && removed > before;) {
    before = removed;
    const again = later;
    later = [];
    for (let at = 0; at < again.length; at += removedPerCall) {
      later.push(...await send(again.slice(at, at + removedPerCall)));
    }
  }
  const stayed = later.length + changed;
  if (stayed > 0) {
    note(
      `${stayed} entries of ${path} stay in the database: ${changed} have changed, because a user ` +
        "was erased; the others follow entries that stay. The next run takes them again.",
    );
  }
  return { removed, stayed };
}

/** Writes a file anew without a user's id and what they have chosen; returns how many entries. */
async function erase(
  path: string,
  { user, pseudonym }: { user: string; pseudonym: string },
): Promise<number> {
  const { head, entries } = await openSealed(path);
  let erased = 0;
  async function* renamed(): AsyncGenerator<SealedEntry> {
    for await (const sealed of entries) {
      const { entry } = sealed;
      if (entry.user !== user) {
        yield sealed;
        continue;
      }
      erased++;
      const usage = entry.usage && withoutCallersId(entry.usage, entry.id);
      const changed = { ...entry, user: pseudonym, metadata: null, idempotencyKey: null, usage };
      yield { line: JSON.stringify(changed), entry: changed };
    }
  }
  await writeSealed(path, head, renamed());
  return erased;
}
