import { readFileSync } from "node:fs";
import { type ClientConfig, driver, type Pool, type PoolClient } from "./postgres_driver.ts";
import type { PostgresAddress } from "../config/postgres_address.ts";
import type { Clock } from "../base/clock.ts";
import { storeDeadlineMs, writeDeadlineMs } from "../base/limits.ts";
import { sessionOptions } from "./postgres_sql.ts";

const connectionsMax = 12;
// The server ends a call, then this process does.
const statementMs = storeDeadlineMs - 1_000;
/** How long one call may take, in ms, with everything that is tried again. */
export const callMs = writeDeadlineMs;
const connectMs = 3_000;
/** How long connecting is tried again, in ms: a server is back in less after a restart. */
const patienceMs = connectMs;
const againMs = 50;

/** How a store waits before it tries again, and how it measures that. */
export interface Waits {
  elapsed: Clock["elapsed"];
  /** Waits for a random time, of at most twice the given one in ms. */
  pause: (aboutMs: number) => Promise<void>;
}

/** Connections to the primary. */
export interface PostgresPool {
  /** Returns a connection, as soon as the server takes one within a few seconds. */
  connect(): Promise<PoolClient>;
  /** Closes a connection that was lost, and each that was opened before: to the same server. */
  discard(client: PoolClient): void;
  end(): Promise<void>;
}

/**
 * Creates a pool of connections to the primary, whichever of the hosts that is: a host that does
 * not answer, or is a standby, is followed by the next one.
 */
export function createPostgresPool(
  address: PostgresAddress,
  { elapsed, pause }: Waits,
): PostgresPool {
  let chosen = 0;
  let ended = false;
  let opened = 0;
  /** Connections up to this number are not used again. */
  let lost = 0;
  /** Since when no connection could be opened. */
  let awaySince: number | null = null;
  const numbers = new WeakMap<object, number>();
  // An empty one: without any, the driver would read the password file of the system's user.
  const password = address.password ?? "";
  class HostClient extends driver.Client {
    constructor(config: ClientConfig) {
      // The pool hides the password, so that a copy of its options is without it.
      super({ ...config, ...address.hosts[chosen % address.hosts.length], password });
      numbers.set(this, ++opened);
      this.once("error", () => {});
    }
  }
  const next = (at: number) => void (chosen = Math.max(chosen, at + 1));
  const pool: Pool = new driver.Pool({
    Client: HostClient,
    user: address.user,
    database: address.database,
    ssl: tlsOptions(address),
    enableChannelBinding: address.channelBinding,
    options: `${sessionOptions(statementMs)} ${address.options}`.trim(),
    application_name: "farebox",
    max: connectionsMax,
    connectionTimeoutMillis: connectMs,
    idleTimeoutMillis: 60_000,
    query_timeout: callMs,
    keepAlive: true,
    async onConnect(client: PoolClient) {
      const at = chosen;
      const { rows: [row] } = await client.query("SELECT pg_is_in_recovery() AS standby");
      if (!row?.standby) return;
      next(at);
      throw new Error("the server is a standby, which cannot be written to");
    },
  });
  // An idle connection was lost: the pool has removed it.
  pool.on("error", () => {});

  /** Asks each of the hosts once. */
  async function connectToPrimary(): Promise<PoolClient> {
    for (let tried = 1;; tried++) {
      const at = chosen;
      try {
        return await pool.connect();
      } catch (error) {
        if (!isPoolBusy(error)) next(at);
        if (tried >= address.hosts.length) throw error;
      }
    }
  }

  const isLost = (client: PoolClient) => (numbers.get(client) ?? 0) <= lost;

  function close(client: PoolClient): void {
    // A server that does not answer would not end the connection either.
    client.connection.stream.destroy();
    client.release(true);
  }

  return {
    async connect() {
      const startedAt = elapsed();
      for (;;) {
        try {
          const client = await connectToPrimary();
          if (isLost(client)) {
            close(client);
            continue;
          }
          awaySince = null;
          return client;
        } catch (error) {
          if (ended || isPoolBusy(error) || isRejection(error)) throw error;
          awaySince ??= startedAt;
          if (elapsed() - Math.min(startedAt, awaySince) > patienceMs) throw error;
          await pause(againMs);
        }
      }
    },
    discard(client) {
      if (!isLost(client)) lost = opened;
      close(client);
    },
    async end() {
      ended = true;
      await pool.end();
    },
  };
}

/** Does something on one connection, which is closed when that fails. */
export async function withClient<T>(
  pool: PostgresPool,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    const value = await work(client);
    client.release();
    return value;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/**
 * Whether the server refused a statement or a session, and can go on with the connection. A server
 * that shuts down or starts, or has become a standby, cannot.
 */
export function isRejection(error: unknown): boolean {
  return error instanceof driver.DatabaseError && !/^(57P|08|25006)/.test(error.code ?? "");
}

/** Whether all connections were in use for too long: no other host would help. */
function isPoolBusy(error: unknown): boolean {
  return error instanceof Error && error.message.includes("timeout exceeded when trying");
}

function tlsOptions({ tls, rootCertPath }: PostgresAddress): ClientConfig["ssl"] {
  if (!tls) return false;
  if (rootCertPath === null) return { rejectUnauthorized: true };
  return { rejectUnauthorized: true, ca: readFileSync(rootCertPath, "utf8") };
}
