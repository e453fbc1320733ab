import { CsvError, parse } from "csv-parse/sync";
import { csvText } from "../../src/base/csv.ts";
import { ApiError } from "../../src/base/errors.ts";
import { isObject, type JsonObject, parseJson } from "../../src/base/json.ts";
import { decodeUtf8 } from "../../src/base/utf8.ts";
import { type Amount, toAmount, zero } from "../../src/base/money.ts";
import { parseWith } from "../../src/base/request.ts";
import { checkUserId } from "../../src/base/user_id.ts";
import { depositBodySchema } from "../../src/ledger/schema.ts";
import { refused } from "./failure.ts";

/** One deposit to make. */
export interface ImportRow {
  /** Its number in the file, from 1. */
  line: number;
  user: string;
  amount: Amount;
  metadata: JsonObject | null;
}

/** A file that was read completely. */
export interface ImportFile {
  rows: ImportRow[];
  /** Lines with an amount of zero: there is nothing to deposit. */
  empty: number;
  bad: { line: number; reason: string }[];
}

/** More than fits into one string. */
const bytesMax = 256 * 1024 * 1024;
const columns = ["user", "amount", "metadata"];

/** Reads and validates all lines of a file. Throws `Failure` where it has no readable lines. */
export async function readImportFile(path: string, format: "csv" | "jsonl"): Promise<ImportFile> {
  const bytes = await Deno.readFile(path).catch((error) => {
    throw refused(`${path} cannot be read: ${error.message}`);
  });
  if (bytes.length > bytesMax) throw refused(`${path} is larger than 256 MiB. Split it.`);
  const text = decodeUtf8(bytes);
  if (text === null) throw refused(`${path} is not well-formed UTF-8.`);
  const file: ImportFile = { rows: [], empty: 0, bad: [] };
  const lineOf = new Map<string, number>();
  for (const { line, fields } of format === "csv" ? csvLines(text, path) : jsonLines(text)) {
    try {
      const row = readRow(fields(), line);
      const before = lineOf.get(row.user);
      if (before !== undefined) throw new Fault(`the user is the same as in line ${before}`);
      lineOf.set(row.user, line);
      if (row.amount === zero) file.empty++;
      else file.rows.push(row);
    } catch (error) {
      if (!(error instanceof Fault || error instanceof ApiError)) throw error;
      file.bad.push({ line, reason: error.message });
    }
  }
  return file;
}

/** The error of one line. */
class Fault extends Error {}

interface Line {
  line: number;
  /** Throws `Fault`. */
  fields: () => Record<string, unknown>;
}

function readRow(fields: Record<string, unknown>, line: number): ImportRow {
  const user = checkUserId(fields.user, "user");
  if (user.trim() !== user) throw new Fault("the user begins or ends with a blank");
  const metadata = isObject(fields.metadata) ? fields.metadata : null;
  // A user with nothing is the same with or without a deposit.
  const isNothing = typeof fields.amount === "string" && /^0(\.0{1,9})?$/.test(fields.amount);
  if (isNothing) return { line, user, amount: zero, metadata };
  return { line, user, amount: toAmount(parseWith(depositBodySchema, fields).amount), metadata };
}

function* csvLines(text: string, path: string): Generator<Line> {
  const [head, ...records] = parseCsv(text, path);
  const names = head?.record ?? [];
  const unknown = names.find((name) => !columns.includes(name));
  if (!names.includes("user") || !names.includes("amount") || unknown !== undefined) {
    throw refused(`${path} must start with a line that names its columns: user,amount[,metadata].`);
  }
  for (const { record, info: { lines: line } } of records) {
    yield {
      line,
      fields() {
        if (record.length !== names.length) {
          throw new Fault(`it has ${record.length} cells, but the first line ${names.length}`);
        }
        const fields = Object.fromEntries(names.map((name, at) => [name, record[at] ?? ""]));
        const { metadata, user = "", ...others } = fields;
        // An export escapes user ids that look like a formula, such as "+49…".
        const rest = { user: csvText(user), ...others };
        return metadata ? { ...rest, metadata: readJson(metadata, "metadata") } : rest;
      },
    };
  }
}

function parseCsv(text: string, path: string): { record: string[]; info: { lines: number } }[] {
  try {
    return parse(text, {
      bom: true,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
    }) as unknown as { record: string[]; info: { lines: number } }[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // With unbalanced quotes, the start of the next line is unknown.
    throw refused(`${path} is not well-formed CSV: ${error.message}`);
  }
}

function* jsonLines(text: string): Generator<Line> {
  let line = 0;
  for (const each of text.replace(/^\ufeff/, "").split("\n")) {
    line++;
    if (each.trim() === "") continue;
    const at = line;
    yield {
      line: at,
      fields() {
        const fields = readJson(each, "it");
        if (!isObject(fields)) throw new Fault("it is not a JSON object");
        return fields;
      },
    };
  }
}

function readJson(text: string, what: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new Fault(`${what} is not JSON`);
  }
}
