import type { DatabaseSync } from "node:sqlite";

/**
 * Everything that Deno KV creates in a file, by type and name, as SQLite stores it. A test compares
 * it with a new file. Where a version of Deno changes a text, the former stays beside it: backups
 * have it.
 */
const known: ReadonlyMap<string, readonly string[]> = new Map([
  ["table migration_state", [
    "CREATE TABLE migration_state( k integer not null primary key, version integer not null )",
  ]],
  ["table data_version", [
    "CREATE TABLE data_version ( k integer primary key, version integer not null , " +
    "seq integer not null default 0)",
  ]],
  ["table kv", [
    "CREATE TABLE kv ( k blob primary key, v blob not null, v_encoding integer not null, " +
    "version integer not null , seq integer not null default 0, " +
    "expiration_ms integer not null default -1) without rowid",
  ]],
  ["table queue", [
    "CREATE TABLE queue ( ts integer not null, id text not null, data blob not null, " +
    "backoff_schedule text not null, keys_if_undelivered blob not null, primary key (ts, id) )",
  ]],
  ["table queue_running", [
    "CREATE TABLE queue_running( deadline integer not null, id text not null, " +
    "data blob not null, backoff_schedule text not null, keys_if_undelivered blob not null, " +
    "primary key (deadline, id) )",
  ]],
  // SQLite creates these for primary keys, and stores no text.
  ["index sqlite_autoindex_queue_1", [""]],
  ["index sqlite_autoindex_queue_running_1", [""]],
  ["index kv_expiration_ms_idx", ["CREATE INDEX kv_expiration_ms_idx on kv (expiration_ms)"]],
]);

/**
 * Returns what a database contains that Deno KV does not create, and what is missing: a trigger, a
 * view or a table with other columns could change what is later written. Reads the schema only, so
 * that nothing of the file is run.
 */
export function foreignSchema(database: DatabaseSync): string[] {
  const rows = database.prepare("SELECT type, name, sql FROM sqlite_schema").all();
  const found = new Map(
    rows.map(({ type, name, sql }) => [`${type} ${name}`, normal(String(sql ?? ""))]),
  );
  const foreign = [...found].filter(([name, sql]) => !known.get(name)?.includes(sql));
  const missing = [...known.keys()].filter((name) => name.startsWith("table") && !found.has(name));
  return [
    ...foreign.map(([name]) => known.has(name) ? `another ${name}` : `the ${name.slice(0, 80)}`),
    ...missing.map((name) => `no ${name}`),
  ];
}

function normal(sql: string): string {
  return sql.replace(/\s+/g, " ");
}
