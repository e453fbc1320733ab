import { driver, type PoolClient, type Query } from "./postgres_driver.ts";
import { parsePostgres } from "../config/postgres_address.ts";
import { decodeKey, encodeKey } from "../store/key_bytes.ts";
import type { Key, Kv, KvLimits, ListOptions, Row } from "../store/kv.ts";
import {
  callWrite,
  createSchema,
  createWriteFunction,
  listRows,
  readRows,
  schemaNumber,
} from "./postgres_sql.ts";
import { createPostgresPool, type PostgresPool, type Waits, withClient } from "./postgres_pool.ts";
import { createPostgresCalls } from "./postgres_calls.ts";
import { requireSessions } from "./postgres_pooler.ts";
import {
  byteas,
  keyBuffer,
  readable,
  readBytea,
  readByteas,
  readKey,
  versionOf,
  writeArguments,
} from "./postgres_values.ts";

const limits: KvLimits = { checks: 500, readKeys: 200, inFlight: 6, isShared: true };
const attemptsMax = 20;
const retryMs = 10;

/** A PostgreSQL database as a store. */
export interface PostgresStore {
  kv: Kv;
  /** What its settings put at risk, for the operator; null where they are sound. */
  warning: string | null;
}

/**
 * Connects to a PostgreSQL database, and creates the schema where it is missing. Throws an Error
 * that says why it cannot be used, without the password.
 */
export async function openPostgres(
  kvPath: string,
  { password, waits }: { password: string | null; waits: Waits },
): Promise<PostgresStore> {
  const address = parsePostgres(kvPath);
  const pool = createPostgresPool({ ...address, password: password ?? address.password }, waits);
  try {
    await requireSessions(pool);
    await withClient(pool, migrate);
    return { kv: postgresKv(pool, waits), warning: await withClient(pool, findRisk) };
  } catch (error) {
    await pool.end();
    throw error;
  }
}

/** Any number that no other program takes for an advisory lock of this database. */
const migrationLock = 4_627_351_802;

async function migrate(client: PoolClient): Promise<void> {
  if (await schemaOf(client) < schemaNumber) {
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock($1)", [migrationLock]);
    await client.query(createSchema);
    if (await schemaOf(client) < schemaNumber) {
      await client.query(createWriteFunction);
      await client.query("UPDATE farebox_schema SET number = $1", [schemaNumber]);
    }
    await client.query("COMMIT");
  }
  requireKnown(await schemaOf(client));
}

async function schemaOf(client: PoolClient): Promise<number> {
  const { rows: [table] } = await client.query("SELECT to_regclass('farebox_schema') AS name");
  if (!table?.name) return 0;
  const { rows: [row] } = await client.query("SELECT number FROM farebox_schema");
  return Number(row?.number ?? 0);
}

function requireKnown(found: number): void {
  if (found <= schemaNumber) return;
  throw new Error(
    `its schema ${found} was made by a newer version. Start that one, or restore the backup from ` +
      "before the upgrade",
  );
}

async function findRisk(client: PoolClient): Promise<string | null> {
  const { rows: [row] } = await client.query(
    "SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS " +
      "full_page_writes, current_setting('synchronous_commit') AS synchronous_commit",
  );
  const off = Object.entries(row ?? {}).flatMap(([name, value]) => value === "off" ? [name] : []);
  return off.length === 0 ? null : `${off.join(", ")} is off on the server: acknowledged money ` +
    "can be lost when it crashes";
}

function postgresKv(pool: PostgresPool, waits: Waits): Kv {
  let closed = false;
  const { read, write: callOnce } = createPostgresCalls(pool, waits, () => closed);

  async function getMany(keys: readonly Key[]): Promise<Row[]> {
    const encoded = keys.map((key) => readable(key));
    const found = new Map<string, (string | null)[]>();
    const rows = await read(prepared("farebox_read", readRows, [byteas(encoded)]));
    for (const row of rows) found.set(readKey(row[0]), row);
    return keys.map((key, at) => {
      const row = found.get(encoded[at] ?? "");
      return row ? rowOf(row, key) : { key, value: null, version: null };
    });
  }

  const atomicOrFailed: NonNullable<Kv["atomicOrFailed"]> = async (write) => {
    const { args, failing } = writeArguments(write);
    if (failing.length > 0) return failing;
    const [row] = await again(() => callOnce(prepared("farebox_write", callWrite, args)), waits);
    const [version, failed] = row ?? [];
    if (version) return versionOf(version);
    const keys = new Set(failed ? readByteas(failed) : []);
    return write.checks.flatMap(({ key }, at) => keys.has(encodeKey(key)) ? [at] : []);
  };

  return {
    limits,
    getMany,
    atomicOrFailed,
    async get(key) {
      const [row] = await getMany([key]);
      return row ?? { key, value: null, version: null };
    },
    async list(options) {
      const [from, until] = rangeOf(options);
      const { reverse = false, limit } = options;
      const name = reverse ? "farebox_list_down" : "farebox_list_up";
      const text = listRows(reverse ? "DESC" : "ASC");
      const values = [keyBuffer(from), keyBuffer(until), String(limit)];
      return (await read(prepared(name, text, values))).map((row) => rowOf(row));
    },
    async atomic(write) {
      const outcome = await atomicOrFailed(write);
      return typeof outcome === "string" ? outcome : null;
    },
    close() {
      closed = true;
      pool.end().catch(() => {});
    },
  };
}

/** Runs a call again that the server gave up in favour of another one. */
async function again<T>(call: () => Promise<T>, { pause }: Waits): Promise<T> {
  for (let attempt = 1;; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt === attemptsMax || !isContention(error)) throw error;
      await pause(retryMs * attempt);
    }
  }
}

/** serialization_failure, deadlock_detected, and a row that appeared beside the call. */
function isContention(error: unknown): boolean {
  return error instanceof driver.DatabaseError &&
    ["40001", "40P01", "23505"].includes(error.code ?? "");
}

// The driver leaves values as they are: rows are bytes.
const types = { getTypeParser: () => (value: string) => value };

function prepared(name: string, text: string, values: (Uint8Array | string)[]): Query {
  return { name, text, values, rowMode: "array", types };
}

function rowOf([key, value, version]: (string | null)[], known?: Key): Row {
  return {
    key: known ?? decodeKey(readBytea(key)),
    value: readBytea(value),
    version: version ? versionOf(version) : null,
  };
}

/** The bounds of a listing, as Deno KV has them. */
function rangeOf({ prefix, start, end, limit }: ListOptions): [string, string] {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new TypeError(`Limit must be a positive integer: received ${limit}`);
  }
  const within = encodeKey(prefix);
  const from = start ? readable(start) : `${within}\x00`;
  const until = end ? readable(end) : `${within}\xff`;
  if (start && end) {
    if (from > until) throw new TypeError("Start key is greater than end key");
    return [from, until];
  }
  if (start && !from.startsWith(within)) {
    throw new TypeError("Start key is not in the keyspace defined by prefix");
  }
  if (end && !until.startsWith(within)) {
    throw new TypeError("End key is not in the keyspace defined by prefix");
  }
  return [from, until];
}
