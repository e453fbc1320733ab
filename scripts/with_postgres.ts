/**
 * Runs a command with `WORLD_STORE` set to the URL of a PostgreSQL server that lives as long as it:
 *   deno run -A scripts/with_postgres.ts deno test -A tests/ledger
 * POSTGRES_BIN names the folder of the server's programs, where it is not a usual one.
 */
import { startPostgres } from "../tests/support/postgres.ts";

const [program = "", ...args] = Deno.args;
await using server = await startPostgres();
const { code } = await new Deno.Command(program, {
  args,
  env: { WORLD_STORE: server.url() },
  stdin: "null",
}).spawn().status;
Deno.exitCode = code;
