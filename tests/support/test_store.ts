import pg from "pg";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { openPostgres } from "../../src/platform/postgres.ts";
import { waits } from "./postgres.ts";
import type { Kv } from "../../src/store/kv.ts";

/**
 * A new, empty store for a test: in memory, or a schema of the PostgreSQL database whose URL
 * `WORLD_STORE` has. `isShared` is what the service believes of it.
 */
export async function openTestStore(isShared = false): Promise<Kv> {
  const url = Deno.env.get("WORLD_STORE");
  const kv = url ? await openSchema(url) : denoKv(await Deno.openKv(":memory:"));
  // Clocks of tests stand still: only tests that move theirs can wait for other processes.
  return { ...kv, limits: { ...kv.limits, isShared } };
}

async function openSchema(url: string): Promise<Kv> {
  const name = `world_${crypto.randomUUID().replaceAll("-", "")}`;
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`CREATE SCHEMA ${name}`);
  await client.end();
  const options = encodeURIComponent(`-c search_path=${name} -c synchronous_commit=off`);
  return (await openPostgres(`${url}?options=${options}`, { password: null, waits })).kv;
}
