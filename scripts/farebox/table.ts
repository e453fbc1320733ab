/** Formats rows under a head, in columns as wide as needed; numbers are aligned to the right. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((row) => row.map(printable));
  const widths = head.map((_, at) => Math.max(...lines.map((line) => (line[at] ?? "").length)));
  const numeric = head.map((_, at) =>
    rows.length > 0 && rows.every((row) => /^(-?[\d.]+)?$/.test(row[at] ?? ""))
  );
  return lines.map((line) =>
    line.map((cell, at) =>
      numeric[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
    ).join("  ").trimEnd()
  ).join("\n");
}

/** Formats one record, a field per line. */
export function formatFields(fields: Record<string, unknown>): string {
  const rows = Object.entries(fields).map(([name, value]) => [name, formatValue(value)] as const);
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`).join("\n");
}

/** Formats a value on one line: text as it is, null as a dash, the rest as JSON. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Removes what would move the cursor or reverse lines on a terminal: names of users and projects
 * are other people's text.
 */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
