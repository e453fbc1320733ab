import { driver, type PoolClient, type Query } from "./postgres_driver.ts";
import { type PostgresPool, withClient } from "./postgres_pool.ts";

/** No such prepared statement, or one of this name from somebody else. */
const statementFaults = ["26000", "42P05"];

/**
 * Throws where a pooler gives the statements of one connection to several connections of the
 * server, and does not prepare them there: most calls would fail. Two connections prepare the same
 * name, and each uses its own again: behind such a pooler they meet each other's.
 */
export async function requireSessions(pool: PostgresPool): Promise<void> {
  try {
    await withClient(pool, (one) => withClient(pool, (two) => useEach(one, two)));
  } catch (error) {
    throw isStatementFault(error) ? new Error(refusal, { cause: error }) : error;
  }
}

async function useEach(one: PoolClient, two: PoolClient): Promise<void> {
  await one.query(probe("farebox_probe_a"));
  await two.query(probe("farebox_probe_a"));
  await one.query(probe("farebox_probe_b"));
  await one.query(probe("farebox_probe_b"));
}

const refusal = "transaction mode of PgBouncer needs version 1.21 or later, with " +
  "max_prepared_statements above 0. See the guide to PostgreSQL";

function probe(name: string): Query {
  return {
    name,
    text: "SELECT $1::text",
    values: ["x"],
    rowMode: "array",
    types: { getTypeParser: () => (value) => value },
  };
}

function isStatementFault(error: unknown): boolean {
  return error instanceof driver.DatabaseError && statementFaults.includes(error.code ?? "");
}
