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
import { Unreachable } from "./failure.ts";
import { openOutput, type OutputFile } from "./output_file.ts";
import { projectPath } from "./paths.ts";

interface ExportOptions {
  what: ExportKind;
  format: "jsonl" | "csv";
  from?: string;
  to?: string;
  out: string;
}

/** How many connections in a row may break without a single record. */
const attemptsMax = 5;
const pauseMs = 1_000;

/** `farebox export` */
export function addExport(program: Command, open: () => Context): void {
  program.command("export <project>")
    .description("export all records of one kind, as JSON lines or CSV")
    .addOption(new Option("--what <kind>", "which").choices(exportKinds).default("entries"))
    .addOption(new Option("--format <format>", "how").choices(["jsonl", "csv"]).default("jsonl"))
    .option("--from <time>", "created from this time on: ISO 8601, or a date (UTC)")
    .option("--to <time>", "created before this time")
    .option("--out <file>", "the file to write; - for standard output", "-")
    .action(async (project: string, options: ExportOptions) => {
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
 * connection the next one continues there.
 */
async function exportTo(
  output: OutputFile,
  { api, note, progress }: Context,
  { project, what, format, from, to }: ExportOptions & { project: string },
): Promise<number> {
  const path = `${projectPath(project)}/export`;
  const columns = exportColumns[what];
  const startedAt = performance.now();
  let after: string | undefined;
  let records = 0;
  if (format === "csv") await output.write(csvLine(columns));
  for (let attempt = 1;;) {
    try {
      const response = await api.raw(path, { query: { what, from, to, after } });
      for await (const lines of readLines(response)) {
        const found = lines.map(readRecord);
        const text = format === "csv"
          ? found.map((record) => csvRecord(record, columns)).join("")
          : lines.map((line) => line + "\n").join("");
        await output.write(text);
        const last = found.at(-1);
        if (last) after = exportPosition(what, last);
        records += found.length;
        attempt = 1;
        progress(() => `${count(records)} ${what}, ${rate(records, startedAt)} a second`);
      }
      return records;
    } catch (error) {
      if (!(error instanceof Unreachable) || attempt >= attemptsMax) throw error;
      note(`${error.message} Continuing after ${count(records)} ${what}.`);
      attempt++;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** Yields complete lines as they arrive. Throws `Unreachable` where they end early. */
async function* readLines({ body, url }: Response): AsyncGenerator<string[]> {
  let rest = "";
  const reader = (body ?? new Blob().stream()).pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw new Unreachable(
        `The connection to ${new URL(url).origin} closed early: ${error.message}.`,
      );
    });
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    yield lines;
  }
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
