import { readFileSync } from "node:fs";
import { type ClientConfig, driver, type Pool, type PoolClient } from "./postgres_driver.ts";
import type { PostgresAddress } from "../base/postgres_address.ts";
import { storeDeadlineMs } from "../base/limits.ts";
import { sessionOptions } from "./postgres_sql.ts";

const connectionsMax = 12;
// The server ends a call, then this process does, and both before the store's deadline.
const statementMs = storeDeadlineMs - 1_000;
const callMs = storeDeadlineMs - 500;
const connectMs = 3_000;

/**
 * Creates a pool of connections to the primary, whichever of the hosts that is: a host that does
 * not answer, or is a standby, is followed by the next one.
 */
export function createPostgresPool(address: PostgresAddress): Pool {
  let chosen = 0;
  // An empty one: without any, the driver would read the password file of the system's user.
  const password = address.password ?? "";
  class HostClient extends driver.Client {
    constructor(config: ClientConfig) {
      // The pool hides the password, so that a copy of its options is without it.
      super({ ...config, ...address.hosts[chosen % address.hosts.length], password });
      this.once("error", () => {});
    }
  }
  const next = (at: number) => void (chosen = Math.max(chosen, at + 1));
  const pool = new driver.Pool({
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
  const connect = pool.connect.bind(pool);
  const withFailover = async () => {
    for (let tried = 1;; tried++) {
      const at = chosen;
      try {
        return await connect();
      } catch (error) {
        if (!isPoolBusy(error)) next(at);
        if (tried >= address.hosts.length) throw error;
      }
    }
  };
  return Object.assign(pool, { connect: withFailover });
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
