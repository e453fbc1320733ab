/// <reference lib="deno.worker" />
import { DatabaseSync } from "node:sqlite";

self.onmessage = ({ data: { from, to } }: MessageEvent<{ from: string; to: string }>) => {
  try {
    copy(from, to);
    self.postMessage({ error: null });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};

/**
 * Copies row by row into a new file, within one read transaction. Copying pages would be faster,
 * but would include deleted data, such as an erased user: SQLite leaves that in place.
 */
function copy(from: string, to: string): void {
  using source = new DatabaseSync(from, { readOnly: true });
  using target = new DatabaseSync(to);
  // What dies with its process is removed at the next start.
  target.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  source.exec("BEGIN");
  const made = source.prepare(
    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type <> 'table'",
  ).all();
  for (const { type, name, sql } of made) {
    target.exec(String(sql));
    if (type === "table") copyRows(String(name), source, target);
  }
  target.exec("COMMIT");
}

function copyRows(table: string, source: DatabaseSync, target: DatabaseSync): void {
  const rows = source.prepare(`SELECT * FROM "${table}"`);
  rows.setReadBigInts(true);
  const columns = rows.columns().map(() => "?");
  const put = target.prepare(`INSERT INTO "${table}" VALUES (${columns.join()})`);
  for (const row of rows.iterate()) put.run(...Object.values(row));
}
