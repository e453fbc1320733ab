import { isObject, type Json, type JsonObject } from "./json.ts";

/** Returns one line of CSV (RFC 4180), with its line end; null is an empty cell. */
export function csvLine(cells: readonly (string | null)[]): string {
  return cells.map(csvCell).join(",") + "\r\n";
}

// A spreadsheet runs a cell that starts like a formula; a leading apostrophe makes it text
// (https://owasp.org/www-community/attacks/CSV_Injection). Amounts with a minus are left alone.
function csvCell(value: string | null): string {
  if (value === null) return "";
  const isFormula = /^'*[=+@\t\r-]/.test(value) && !/^-?[\d.]+$/.test(value);
  const safe = isFormula ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns the original text of a cell, without the apostrophe that `csvLine` may have added. */
export function csvText(cell: string): string {
  return /^'+[=+@\t\r-]/.test(cell) ? cell.slice(1) : cell;
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
