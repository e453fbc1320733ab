import assert from "node:assert/strict";
import { openPostgres } from "../../src/platform/postgres.ts";
import { emptyWrite, type Key, type Kv } from "../../src/store/kv.ts";
import {
  findPostgres,
  hasStandbys,
  type PostgresServer,
  startPostgres,
  waits,
} from "../support/postgres.ts";
import { eventually, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp_proxy.ts";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { makeProject } from "../support/traffic.ts";
import { adminKey } from "../support/world.ts";

const ignore = findPostgres() === null;
const test = (name: string, fn: () => Promise<void>) => Deno.test({ name, ignore, fn });
const connections = 12;

const through = (proxy: TcpProxy, server: PostgresServer) =>
  server.url().replace(`:${server.port}`, `:${proxy.port}`);

async function open(url: string): Promise<Kv> {
  const { kv } = await openPostgres(url, { password: null, waits });
  await put(kv, "a");
  await readOnAll(kv);
  return kv;
}

const put = (kv: Kv, name: string, version?: string | null) =>
  kv.atomic({
    ...emptyWrite(),
    checks: version === undefined ? [] : [{ key: [name], version }],
    sets: [{ key: [name], value: new Uint8Array(1_000) }],
  });

/** As many reads at once as there are connections. */
async function readOnAll(kv: Kv): Promise<void> {
  const key: Key = ["a"];
  const reads = Array.from({ length: connections }, () => kv.get(key));
  for (const { value } of await Promise.all(reads)) assert.equal(value?.length, 1_000);
}

test("postgres: reads whose connections are cut are read again, also within a result", async () => {
  await using server = await startPostgres();
  await using proxy = startTcpProxy(server.port);
  const kv = await open(through(proxy, server));
  proxy.cut();
  await readOnAll(kv);
  const reads: [string, () => Promise<unknown[]>][] = [
    ["a get", async () => [await kv.get(["a"])]],
    ["a read of many", () => kv.getMany([["a"]])],
    ["a listing", () => kv.list({ prefix: [], limit: 10 })],
  ];
  for (const [name, read] of reads) {
    for (const bytes of [0, 1, 100, 900]) {
      proxy.cutAnswerAfter(bytes);
      assert.equal((await read()).length, 1, `${name}, cut after ${bytes} bytes`);
    }
  }
  const ended = await server.run(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity " +
      "WHERE application_name = 'farebox'",
  );
  assert.ok(Number(ended) > 0);
  await readOnAll(kv);
  kv.close();
});

test("postgres: calls during a restart of the server wait until it is back", async () => {
  await using server = await startPostgres();
  const kv = await open(server.url());
  await server.stop("fast");
  const reading = readOnAll(kv);
  const writing = put(kv, "b");
  await server.start();
  await reading;
  assert.ok(await writing);
  kv.close();
});

test("postgres: reads move to new connections where the open ones hang", async () => {
  await using server = await startPostgres();
  await using proxy = startTcpProxy(server.port);
  const kv = await open(through(proxy, server));
  proxy.swallow("open");
  const made = proxy.made;
  await readOnAll(kv);
  assert.ok(proxy.made > made);
  // A write is not sent again by the store itself, but later ones have new connections too.
  proxy.swallow("open");
  await assert.rejects(put(kv, "b"));
  assert.ok(await put(kv, "b"));
  kv.close();
});

test("postgres: while a synchronous standby is away, reads work and hanging writes are bounded", async () => {
  await using server = await startPostgres();
  const kv = await open(server.url());
  const { version } = await kv.get(["a"]);
  await standbyIs(server, "gone");
  const writes = Array.from({ length: connections }, (_, n) => put(kv, `b${n}`));
  for (const { status } of await Promise.allSettled(writes)) assert.equal(status, "rejected");
  await readOnAll(kv);
  for (let n = 0; n < 30; n++) await assert.rejects(put(kv, `c${n}`), /standby/);
  const hanging = await server.run(
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
  );
  assert.ok(Number(hanging) <= connections, `${hanging} writes hang`);
  await standbyIs(server, "");
  await eventually(() => put(kv, "d").then(() => true, () => false));
  assert.ok(await put(kv, "a", version));
  assert.equal(await put(kv, "c0", null) === null, false, "what was refused was not sent");
  kv.close();
});

async function standbyIs(server: PostgresServer, name: string): Promise<void> {
  await server.run(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
  await server.run("SELECT pg_reload_conf()");
  await eventually(async () => {
    const [found] = (await server.run("SHOW synchronous_standby_names")).split("\n");
    return found === name;
  });
}

Deno.test({
  name: "postgres: a primary that hangs is left for the standby that was promoted",
  ignore: !hasStandbys(),
  async fn() {
    const settings = ["wal_level=replica", "max_wal_senders=10"];
    await using primary = await startPostgres({ settings });
    await using standby = await startPostgres({ standbyOf: primary });
    await using proxy = startTcpProxy(primary.port);
    const hosts = `@127.0.0.1:${proxy.port},127.0.0.1:${standby.port}`;
    const kv = await open(primary.url().replace(/@[^/]+/, hosts));
    const replayed = "SELECT count(*) FROM farebox_kv";
    await eventually(async () => await standby.run(replayed).catch(() => "") === "1");
    proxy.swallow("all");
    await standby.promote();
    await eventually(() => readOnAll(kv).then(() => true, () => false));
    assert.ok(await put(kv, "b"));
    assert.equal(await standby.run(replayed), "2");
    kv.close();
  },
});

test("postgres: verify, exports and lists are complete while connections are cut", async () => {
  await using server = await startPostgres();
  await using proxy = startTcpProxy(server.port);
  await using folder = await makeFolder();
  const env = { ...serviceEnv, KV_PATH: through(proxy, server) };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox);
  const deposit = async (n: number) => {
    const body = { user: `user-${n}`, amount: "1" };
    const headers = { "idempotency-key": `order-${n}` };
    const response = await farebox.call("/v1/user/balance/deposit", { key, body, headers });
    await response.body?.cancel();
    return response.status;
  };
  const users = 60;
  const cutting = setInterval(() => proxy.cut(), 100);
  try {
    for (let n = 0; n < users; n++) await eventually(async () => await deposit(n) === 200);
    const [{ id }] = (await farebox.json("/v1/admin/projects", { key: adminKey })).projects;
    for (let n = 0; n < 5; n++) {
      const what = `/v1/admin/projects/${id}/export?what=entries`;
      const entries = await farebox.call(what, { key: adminKey });
      assert.equal(entries.status, 200);
      assert.equal((await entries.text()).match(/order-\d+/g)?.length, users);
      const list = await farebox.json("/v1/user/activities?user=user-1", { key });
      assert.equal(list.activities.length, 1);
      const { faults } = await verifyLedger({ url: farebox.url, adminKey });
      assert.deepEqual(faults, []);
    }
  } finally {
    clearInterval(cutting);
  }
});
