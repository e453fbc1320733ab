import { isObject, type Json, type JsonObject } from "./json.ts";

/** Returns one line of CSV (RFC 4180), with its line end; null is an empty cell. */
export function csvLine(cells: readonly (string | null)[]): string {
  return cells.map(csvCell).join(",") + "\r\n";
}

// A spreadsheet runs a cell that starts like a formula; a leading apostrophe makes it text
// (https://owasp.org/www-community/attacks/CSV_Injection). Some split at semicolons or tabs instead
// of commas. Then a quote inside of a line protects nothing, so a cell may also start after each
// semicolon, tab or line end of a text.
const breaks = String.raw`;\t\n\v\f\r\u0085\u2028\u2029`;
/** What spreadsheets trim or skip in front of a formula, and quotes. */
const skipped = String.raw`[[\s\p{C}'"]--[${breaks}]]*`;
/** The signs of a formula, also full-width, small, superscript and subscript. */
const signs = String.raw`[=+\-@＝＋－＠﹦﹢﹣﹫−⁼⁺⁻₌₊₋]`;
const atStart = String.raw`(?='*[\t\r])`;
const inside = `(?=${skipped}${signs})`;
const formulaStart = new RegExp(`^${atStart}|(?<=^|[${breaks}])${inside}`, "gv");
const markedStart = new RegExp(`^'${atStart}|(?<=^|[${breaks}])'${inside}`, "gv");

function csvCell(
  value: string | null,
  at: number,
  cells: readonly (string | null)[],
): string {
  if (value === null) return "";
  // Amounts with a minus are left alone. In front of other cells, one may start a longer formula.
  const isAlone = at > 0 || cells.length === 1;
  const isNumber = isAlone && /^-?[\d.]+$/.test(value);
  const safe = isNumber ? value : value.replace(formulaStart, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns the original text of a cell, without the apostrophes that `csvLine` may have added. */
export function csvText(cell: string): string {
  return cell.replace(markedStart, "");
}

/** Returns a record as a line of CSV; a column such as `usage.model` is a field of a field. */
export function csvRecord(record: JsonObject, columns: readonly string[]): string {
  return csvLine(columns.map((column) => {
    const value = column.split(".").reduce<Json | undefined>(
      (at, name) => (isObject(at) ? at[name] : undefined),
      record,
    );
    if (value === null || value === undefined) return null;
    return typeof value === "string" ? value : JSON.stringify(value);
  }));
}
