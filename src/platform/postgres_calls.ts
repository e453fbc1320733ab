import type { PoolClient, Query } from "./postgres_driver.ts";
import { callMs, isRejection, type PostgresPool, type Waits } from "./postgres_pool.ts";

/** The values of rows, as the server writes them. */
type Values = (string | null)[][];

/** How the database is called: each call on a connection of its own. */
interface PostgresCalls {
  /** Reads; where a connection is cut or hangs, again on another one. */
  read(query: Query): Promise<Values>;
  /** Writes, once: when it throws something else than a rejection, the outcome is unknown. */
  write(query: Query): Promise<Values>;
}

/** How long a read waits for one connection, in ms, before it is read on another one. */
const firstReadMs = 2_500;
/**
 * The most writes that hang on the server although their connections are closed: such as those that
 * wait for a synchronous standby. Each keeps its place of `max_connections`, which reads need too.
 */
const hangingMax = 8;

/** Calls a database on the connections of a pool; rejects once `isClosed` says so. */
export function createPostgresCalls(
  pool: PostgresPool,
  { elapsed }: Waits,
  isClosed: () => boolean,
): PostgresCalls {
  /** The server's processes that have not answered a write. */
  let hanging: number[] = [];

  async function connect(): Promise<PoolClient> {
    if (isClosed()) throw new Error("The store is closed");
    return await pool.connect();
  }

  async function call(query: Query, onHung?: (client: PoolClient) => void): Promise<Values> {
    const client = await connect();
    try {
      const { rows } = await client.query(query);
      client.release();
      return rows;
    } catch (error) {
      if (isRejection(error)) client.release();
      else {
        onHung?.(client);
        pool.discard(client);
      }
      throw error;
    }
  }

  /** Forgets writes that have ended, or were made at another server. */
  async function forgetEnded(): Promise<void> {
    const values = [`{${hanging.join()}}`];
    const rows = await read({ name: "farebox_hanging", text: stillHanging, values, ...asText });
    const still = new Set(rows.map(([pid]) => Number(pid)));
    hanging = hanging.filter((pid) => still.has(pid));
  }

  async function read(query: Query): Promise<Values> {
    const until = elapsed() + callMs;
    for (let limitMs = firstReadMs;; limitMs = until - elapsed()) {
      try {
        return await call({ ...query, query_timeout: limitMs });
      } catch (error) {
        if (isClosed() || isRejection(error) || until - elapsed() < 1) throw error;
      }
    }
  }

  return {
    read,
    async write(query) {
      if (hanging.length >= hangingMax) await forgetEnded();
      if (hanging.length >= hangingMax) {
        throw new Error("writes hang on the server: is a synchronous standby away?");
      }
      return await call(query, ({ processID }) => hanging.push(processID));
    },
  };
}

const stillHanging = "SELECT pid FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND " +
  "application_name = 'farebox' AND state <> 'idle'";

const asText = {
  rowMode: "array",
  types: { getTypeParser: () => (value: string) => value },
} as const;
