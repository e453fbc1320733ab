import assert from "node:assert/strict";
import { fillBooks } from "../../scripts/bench/books.ts";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { openStore } from "../../src/platform/stores.ts";
import { runFarebox } from "../support/command.ts";
import { findPostgres, startPostgres } from "../support/postgres.ts";
import {
  databaseOf,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { adminKey } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;
const entries = 1_200;

/** Makes a project, and books of a hundred days in its store. */
async function makeBooks(folder: string, env: Record<string, string>): Promise<string> {
  let projectId: string;
  {
    await using farebox = await startFarebox({ folder, env });
    const made = await farebox.json("/v1/admin/projects", { key: adminKey, body: { name: "Old" } });
    projectId = made.project.id;
    farebox.signal("SIGTERM");
    await farebox.ended;
  }
  const kvPath = env.KV_PATH ?? databaseOf(folder);
  const { kv } = await openStore({ kvPath, kvPassword: null, deploy: false });
  const from = Date.now() - 140 * dayMs;
  await fillBooks(kv, projectId, { entries, from, stepMs: 130 * dayMs / entries });
  kv.close();
  return projectId;
}

/** A server before the service that cuts connections from the n-th removal on. */
function cutRemovals({ url }: Farebox, removalsMax: number) {
  let removals = 0;
  const server = Deno.serve({ port: 0, onListen() {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    if (request.method === "POST" && ++removals > removalsMax) {
      return new Response("{}", { status: 503 });
    }
    const { method, headers } = request;
    const body = method === "POST" ? await request.text() : null;
    const { status, body: stream } = await fetch(url + pathname + search, {
      method,
      headers,
      body,
    });
    return new Response(stream, { status });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function archiveAndCompare(folder: string, env: Record<string, string>): Promise<void> {
  const projectId = await makeBooks(folder, env);
  await using farebox = await startFarebox({ folder, env });
  const run = async (args: string[], url = farebox.url) =>
    await runFarebox(args, { folder, url, env: { ADMIN_KEY: adminKey } });
  const out = `${folder}/archive`;
  const create = (url = farebox.url) =>
    run(["archive", "create", projectId, "--months", "1", "--out", out], url);
  const files = () => [...Deno.readDirSync(out)].map(({ name }) => `${out}/${name}`).sort();
  const before = await run(["export", projectId]);
  assert.equal(before.printed.trim().split("\n").length, entries);
  for (const removals of [0, 1]) {
    await using cut = cutRemovals(farebox, removals);
    const { code, complaint } = await create(cut.url);
    assert.equal(code, 3, complaint);
    assert.ok(files().some((name) => name.endsWith(".pending")), files().join());
    const { faults } = await verifyLedger({ url: farebox.url, adminKey });
    assert.deepEqual(faults, []);
  }
  const whole = await create();
  assert.equal(whole.code, 0, whole.complaint);
  assert.match(whole.printed, /entries were removed; 0 stay/);
  assert.ok(files().length >= 3 && files().every((name) => name.endsWith(".jsonl.gz")));
  assert.deepEqual((await verifyLedger({ url: farebox.url, adminKey, parallel: 3 })).faults, []);
  const bare = (await run(["export", projectId])).printed.trim().split("\n");
  assert.ok(bare.length < entries / 2, `${bare.length} entries are left`);
  const after = await run(["export", projectId, "--archive", ...files()]);
  assert.equal(after.printed, before.printed);
  const sealed = await run(["archive", "verify", ...files()], "http://127.0.0.1:9");
  assert.equal(sealed.code, 0, sealed.complaint);
  const again = await create();
  assert.match(again.printed, /^0 entries were removed; 0 stay/);
  const { actions: trail } = await farebox.json(
    `/v1/admin/projects/${projectId}/audit?action=data.archived`,
    { key: adminKey },
  );
  assert.equal(trail.length, files().length, "one row for each file");
}

Deno.test("archive process: cut off and repeated, every entry is in a file or in the database", async () => {
  await using folder = await makeFolder();
  await archiveAndCompare(folder.path, serviceEnv);
});

Deno.test({
  name: "archive process: the same on PostgreSQL",
  ignore: findPostgres() === null,
  async fn() {
    await using server = await startPostgres();
    await using folder = await makeFolder();
    await archiveAndCompare(folder.path, { ...serviceEnv, KV_PATH: server.url() });
  },
});
