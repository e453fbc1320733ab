import assert from "node:assert/strict";
import pg from "pg";
import type { PoolClient, Query } from "../../src/platform/postgres_driver.ts";
import { openPostgres } from "../../src/platform/postgres.ts";
import { requireSessions } from "../../src/platform/postgres_pooler.ts";
import type { PostgresPool } from "../../src/platform/postgres_pool.ts";
import { findPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { findPostgres, startPostgres, waits } from "../support/postgres.ts";

/** What the server answers about a prepared statement. */
const fault = (code: string) => Object.assign(new pg.DatabaseError("", 0, "error"), { code });

/**
 * Connections to a pooler: `sessionOf` says which of the server's connections gets each statement.
 * The driver prepares a name once on each of its own connections.
 */
function createPooler(sessionOf: (client: number, statement: number) => number): PostgresPool {
  const sessions = new Map<number, Set<string>>();
  let clients = 0;
  let statements = 0;

  function createClient(): PoolClient {
    const number = clients++;
    const prepared = new Set<string>();
    const client = {
      release() {},
      query({ name }: Query): Promise<{ rows: [] }> {
        const session = sessionOf(number, statements++);
        const known = sessions.get(session) ?? new Set();
        sessions.set(session, known);
        if (prepared.has(name) && !known.has(name)) return Promise.reject(fault("26000"));
        if (!prepared.has(name) && known.has(name)) return Promise.reject(fault("42P05"));
        prepared.add(name);
        known.add(name);
        return Promise.resolve({ rows: [] });
      },
    };
    return client as unknown as PoolClient;
  }

  return {
    connect: () => Promise.resolve(createClient()),
    discard() {},
    end: () => Promise.resolve(),
  };
}

const refused = /transaction mode of PgBouncer needs version 1\.21 or later/;

Deno.test("postgres: a pooler that mixes sessions is refused, whichever it gives out", async () => {
  const mixing: [string, (client: number, statement: number) => number][] = [
    ["one for all", () => 0],
    ["one after the other", (_, statement) => statement % 2],
    ["of three", (_, statement) => statement % 3],
  ];
  for (const [name, sessionOf] of mixing) {
    await assert.rejects(requireSessions(createPooler(sessionOf)), refused, name);
  }
  await requireSessions(createPooler((client) => client));
});

Deno.test({
  name: "postgres: PgBouncer works in session mode, and is refused in transaction mode",
  ignore: findPostgres() === null || findPgBouncer() === null,
  async fn() {
    await using server = await startPostgres();
    const open = (url: string) => openPostgres(url, { password: null, waits });
    for (const settings of [[], ["server_round_robin = 1"], ["default_pool_size = 1"]]) {
      await using pooler = await startPgBouncer(server, ["pool_mode = transaction", ...settings]);
      await assert.rejects(open(pooler.url), refused, settings.join());
    }
    await using pooler = await startPgBouncer(server, ["pool_mode = session"]);
    const { kv } = await open(pooler.url);
    const reads = Array.from({ length: 100 }, () => kv.get(["a"]));
    assert.equal((await Promise.all(reads)).length, 100);
    kv.close();
  },
});
