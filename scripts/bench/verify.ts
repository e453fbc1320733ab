import { openStore } from "../../src/platform/stores.ts";
import { findPostgres, startPostgres } from "../../tests/support/postgres.ts";
import { verifyLedger } from "../verify_ledger.ts";
import { fillBooks } from "./books.ts";
import { type Figure, show } from "./figures.ts";
import { adminKey, makeFolder, startService } from "./service.ts";

const dayMs = 24 * 60 * 60 * 1000;

async function makeProject(env: Record<string, string>, folder: string) {
  await using service = await startService(env, folder);
  const { key, projectId } = service;
  return { key, projectId };
}

/** Fills a store, and verifies it through a service: for each entry, in microseconds. */
async function measureVerify(
  folder: string,
  env: Record<string, string>,
  { kvPath, entries }: { kvPath: string; entries: number },
): Promise<{ whole: number; since: number }> {
  const like = await makeProject(env, folder);
  const { kv } = await openStore({ kvPath, kvPassword: null, deploy: false });
  const from = Date.now() - 90 * dayMs;
  await fillBooks(kv, like.projectId, { entries, from, stepMs: 80 * dayMs / entries });
  kv.close();
  await using again = await startService(env, folder, { like });
  const run = async (options: { since?: boolean }) => {
    const verdict = await verifyLedger({ url: again.url, adminKey, ...options });
    const seen = verdict.checked.entries ?? 0;
    if (verdict.faults.length > 0) throw new Error(verdict.faults.slice(0, 5).join("\n"));
    console.log(`  ${seen} entries in ${verdict.ms} ms, ${verdict.pages} pages`);
    return verdict.ms * 1_000 / entries;
  };
  return { whole: await run({}), since: await run({ since: true }) };
}

/** Measures `farebox verify` on a file and on PostgreSQL. */
export async function benchVerify(long: boolean): Promise<Figure[]> {
  const entries = long ? 1_000_000 : 100_000;
  const figures: Figure[] = [];
  const note = (where: string, { whole, since }: { whole: number; since: number }) => {
    figures.push(
      { name: `verify an entry, ${entries} of them, ${where}`, value: whole, unit: "µs" },
      { name: `the same once more with --since, ${where}`, value: since, unit: "µs" },
    );
    figures.slice(-2).forEach(show);
    return whole;
  };
  using folder = makeFolder();
  const file = note(
    "on a file",
    await measureVerify(folder.path, {}, { kvPath: `${folder.path}/bench.kv`, entries }),
  );
  if (findPostgres() === null) return figures;
  await using server = await startPostgres();
  using other = makeFolder();
  const kvPath = server.url();
  const far = note(
    "on PostgreSQL",
    await measureVerify(other.path, { KV_PATH: kvPath }, { kvPath, entries }),
  );
  const ratio = far / file;
  figures.push({
    name: "PostgreSQL against the file",
    value: ratio,
    unit: "times",
    bar: "at most 2",
    ok: ratio <= 2,
  });
  show(figures.at(-1) ?? { name: "", value: 0, unit: "" });
  return figures;
}
