import { type PostgresServer, startPostgres } from "./postgres.ts";

/** A database that a test can make fail. */
interface FaultyPostgres extends AsyncDisposable {
  /** For services, with the hosts of all servers. */
  url: string;
  /** Ends the primary at once; resolves when a primary can be used again. */
  crash(): Promise<void>;
}

/** A server that comes back after each crash. */
export async function crashing(): Promise<FaultyPostgres> {
  const server = await startPostgres();
  return {
    url: server.url(),
    async crash() {
      await server.stop("immediate");
      await server.start();
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/**
 * A server with a synchronous standby, which becomes the primary at the first crash; after later
 * crashes it comes back itself. No commit is acknowledged before the standby has it.
 */
export async function failingOver(): Promise<FaultyPostgres> {
  const primary = await startPostgres({ settings: ["wal_level=replica", "max_wal_senders=10"] });
  const standby = await startPostgres({ standbyOf: primary });
  await primary.run("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
  await primary.run("SELECT pg_reload_conf()");
  await eventuallySynchronous(primary);
  let hasFailedOver = false;
  return {
    url: primary.url().replace(/@[^/]+/, `@127.0.0.1:${primary.port},127.0.0.1:${standby.port}`),
    async crash() {
      if (!hasFailedOver) {
        await primary.stop("immediate");
        await standby.promote();
        hasFailedOver = true;
        return;
      }
      await standby.stop("immediate");
      await standby.start();
    },
    async [Symbol.asyncDispose]() {
      await standby[Symbol.asyncDispose]();
      await primary[Symbol.asyncDispose]();
    },
  };
}

async function eventuallySynchronous(primary: PostgresServer): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const state = await primary.run("SELECT sync_state FROM pg_stat_replication");
    if (state === "sync") return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the standby did not become synchronous");
}
