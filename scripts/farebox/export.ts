import { type Command, Option } from "commander";
import { csvLine, csvRecord } from "../../src/base/csv.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../src/base/json.ts";
import {
  exportColumns,
  type ExportKind,
  exportKinds,
  exportPosition,
} from "../../src/export/kinds.ts";
import type { Context } from "./context.ts";
import { type Exported, openArchive } from "./archived_records.ts";
import { readLinesAfter } from "./continued_lines.ts";
import { Unreachable, usage } from "./failure.ts";
import { openOutput, type OutputFile } from "./output_file.ts";
import { projectPath } from "./paths.ts";

interface ExportOptions {
  what: ExportKind;
  format: "jsonl" | "csv";
  from?: string;
  to?: string;
  out: string;
  archive?: string[];
}

/** `farebox export` */
export function addExport(program: Command, open: () => Context): void {
  program.command("export <project>")
    .description("export all records of one kind, as JSON lines or CSV")
    .addOption(new Option("--what <kind>", "which").choices(exportKinds).default("entries"))
    .addOption(new Option("--format <format>", "how").choices(["jsonl", "csv"]).default("jsonl"))
    .option("--from <time>", "created from this time on: ISO 8601, or a date (UTC)")
    .option("--to <time>", "created before this time")
    .option("--out <file>", "the file to write; - for standard output", "-")
    .option("--archive <files...>", "with the entries of these sealed files")
    .action(async (project: string, options: ExportOptions) => {
      if (options.archive && options.what !== "entries") {
        throw usage("--archive is for entries only.");
      }
      const context = open();
      const startedAt = performance.now();
      const output = await openOutput(options.out);
      const records = await output.fill(() => exportTo(output, context, { project, ...options }));
      const ms = Math.round(performance.now() - startedAt);
      const { what } = options;
      const told = `${count(records)} ${what} in ${(ms / 1000).toFixed(1)} s`;
      if (output.isStdout) context.note(told);
      else {
        const result = { what, records, bytes: output.bytes, file: options.out, ms };
        context.print(result, `${told}, in ${options.out}`);
      }
    });
}

/**
 * Requests JSON lines, whatever is written: each contains its position, so that after a broken
 * connection the next one continues there. Entries of sealed files take their places among them.
 */
async function exportTo(
  output: OutputFile,
  { api, note, progress }: Context,
  { project, what, format, from, to, archive = [] }: ExportOptions & { project: string },
): Promise<number> {
  const path = `${projectPath(project)}/export`;
  const columns = exportColumns[what];
  const startedAt = performance.now();
  let records = 0;
  if (format === "csv") await output.write(csvLine(columns));
  const write = async (found: readonly Exported[]) => {
    const text = format === "csv"
      ? found.map(({ record }) => csvRecord(record, columns)).join("")
      : found.map(({ line }) => line + "\n").join("");
    await output.write(text);
    records += found.length;
    progress(() => `${count(records)} ${what}, ${rate(records, startedAt)} a second`);
  };
  const sealed = await openArchive(archive, { project, from, to });
  const pages = readLinesAfter({
    what,
    read: (after) => api.raw(path, { query: { what, from, to, after } }),
    positionOf: (line) => exportPosition(what, readRecord(line)),
    note,
  });
  for await (const lines of pages) {
    const found: Exported[] = [];
    for (const line of lines) {
      const record = readRecord(line);
      const id = String(record.id);
      found.push(...await sealed.before(id));
      const archived = await sealed.at(id);
      // What the database has counts, except for what it has in place of archived entries.
      found.push(...(record.kind === "carried" && archived ? archived : [{ line, record }]));
    }
    await write(found);
  }
  for (let rest = await sealed.before(null); rest.length > 0; rest = await sealed.before(null)) {
    await write(rest);
  }
  return records;
}

function readRecord(line: string): JsonObject {
  const record: Json = parseJson(line);
  if (!isObject(record)) throw new Unreachable("The server is not Farebox: it sent no records.");
  return record;
}

function count(records: number): string {
  return records.toLocaleString("en-US");
}

function rate(records: number, startedAt: number): string {
  return count(Math.round(records / ((performance.now() - startedAt) / 1000)));
}
