import assert from "node:assert/strict";
import { openPostgres } from "../../src/platform/postgres.ts";
import { emptyWrite, type Kv } from "../../src/store/kv.ts";
import { findPostgres, hasStandbys, startPostgres, waits } from "../support/postgres.ts";
import {
  eventually,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { makeProject } from "../support/traffic.ts";
import { adminKey } from "../support/world.ts";

const ignore = findPostgres() === null;
const test = (name: string, fn: () => Promise<void>) => Deno.test({ name, ignore, fn });
const open = (url: string) => openPostgres(url, { password: null, waits });
const put = (kv: Kv, key: string, value = "x") =>
  kv.atomic({
    ...emptyWrite(),
    sets: [{ key: [key], value: new TextEncoder().encode(value) }],
  });

test("postgres: two services share a database, survive its crash, and lose nothing", async () => {
  await using server = await startPostgres();
  await using folder = await makeFolder();
  const how = { folder: folder.path, env: { ...serviceEnv, KV_PATH: server.url() } };
  await using one = await startFarebox(how);
  await using two = await startFarebox(how);
  const key = await makeProject(one);
  const deposit = (at: typeof one) =>
    at.call("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  const balance = async () => (await two.json("/v1/user/balance?user=ada", { key })).balance;
  let recorded = 0;
  for (let n = 0; n < 20; n++) {
    for (const at of [one, two]) {
      assert.equal((await deposit(at)).status, 200);
      recorded++;
    }
  }
  assert.equal(await balance(), `${recorded}`);

  await server.stop("immediate");
  const refused = await deposit(one);
  assert.equal(refused.status, 503);
  assert.equal((await refused.json()).error.code, "store_unavailable");
  await server.start();
  await eventually(async () => (await one.call("/healthz")).status === 200, { withinMs: 20_000 });
  assert.equal(await balance(), `${recorded}`);
  assert.equal((await deposit(one)).status, 200);
  assert.equal((await deposit(two)).status, 200);
  assert.equal(await balance(), `${recorded + 2}`);
  for (const options of [{}, { since: true }, { parallel: 3 }]) {
    const { faults } = await verifyLedger({ url: two.url, adminKey, ...options });
    assert.deepEqual(faults, []);
  }
  const parts = [];
  for (const [at, each] of [one, two].entries()) {
    const query = `part=${at + 1}&parts=2&until=2100-01-01T00:00:00Z`;
    let path = `/v1/admin/verify?${query}`;
    for (let cursor: string | null = ""; cursor !== null;) {
      const page = await each.json(path, { key: adminKey });
      parts.push({ faults: page.faults, tallies: Object.values<number>(page.tallies) });
      cursor = page.nextCursor;
      path = `/v1/admin/verify?cursor=${cursor}`;
    }
  }
  assert.deepEqual(parts.flatMap(({ faults }) => faults), []);
  const tally = parts.flatMap(({ tallies }) => tallies).reduce((sum, more) => sum + more, 0);
  assert.equal(tally, 0, "each process has verified its part");
  for (const { output, errors } of [one, two]) {
    assert.doesNotMatch(`${output()}${errors()}`, /a( |%20)secret/, "the password was shown");
  }
});

test("postgres: one account over two services is never refused for the contention", async () => {
  await using server = await startPostgres();
  await using folder = await makeFolder();
  const how = { folder: folder.path, env: { ...serviceEnv, KV_PATH: server.url() } };
  await using one = await startFarebox(how);
  await using two = await startFarebox(how);
  const key = await makeProject(one);
  const callers = Array.from({ length: 60 }, async (_, at) => {
    for (let n = 0; n < 25; n++) {
      const response = await (at % 2 ? one : two).call("/v1/user/balance/deposit", {
        key,
        body: { user: "ada", amount: "0.01" },
      });
      assert.equal(response.status, 200, await response.text());
    }
  });
  await Promise.all(callers);
  assert.equal((await one.json("/v1/user/balance?user=ada", { key })).balance, "15");
});

test("postgres: a server that stops answering is given up, and used again when it does", async () => {
  await using server = await startPostgres();
  const { kv } = await open(server.url());
  await put(kv, "a");
  const backends = await server.run(
    "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name = 'farebox'",
  );
  const pids = backends.split(" ").map(Number);
  for (const pid of pids) Deno.kill(pid, "SIGSTOP");
  const startedAt = performance.now();
  await assert.rejects(Promise.all(pids.map(() => put(kv, "b"))));
  // A connection on its own is not given up for minutes.
  assert.ok(performance.now() - startedAt < 30_000);
  for (const pid of pids) Deno.kill(pid, "SIGCONT");
  assert.ok(await put(kv, "c"));
  kv.close();
});

Deno.test({
  name: "postgres: a standby is refused, and passed over where another host is the primary",
  ignore: !hasStandbys(),
  async fn() {
    await using primary = await startPostgres({ settings: ["wal_level=replica"] });
    await using standby = await startPostgres({ standbyOf: primary });
    await assert.rejects(open(standby.url()), /is a standby/);
    const both = primary.url().replace(
      /@[^/]+/,
      `@127.0.0.1:${standby.port},127.0.0.1:${primary.port}`,
    );
    const { kv } = await open(both);
    assert.ok(await put(kv, "a"));
    kv.close();
  },
});

test("postgres: a database of a newer version is refused, and one at risk is reported", async () => {
  await using server = await startPostgres({ settings: ["fsync=off"] });
  const first = await open(server.url());
  assert.match(first.warning ?? "", /^fsync is off on the server/);
  first.kv.close();
  await server.run("UPDATE farebox_schema SET number = 1000");
  await assert.rejects(
    open(server.url()),
    /schema 1000 was made by a newer version.* restore the backup/,
  );
});

test("postgres: processes that start at once on an empty database all start", async () => {
  await using server = await startPostgres();
  const opened = await Promise.all(Array.from({ length: 6 }, () => open(server.url())));
  for (const { kv } of opened) kv.close();
});

test("postgres: a service that cannot use its database says why, without the password", async () => {
  await using server = await startPostgres();
  await using folder = await makeFolder();
  const refusal = async (KV_PATH: string) =>
    (await refusedStart({ folder: folder.path, env: { ...serviceEnv, KV_PATH } })).complaint;
  const wrong = server.url().replace("a%20secret", "hidden");
  const complaint = await refusal(wrong);
  assert.match(complaint, /KV_PATH cannot be opened: password authentication failed/);
  assert.ok(!complaint.includes("hidden"));
  assert.match(await refusal(server.url().replace(/:\d+\//, ":1/")), /ECONNREFUSED|refused/);
  assert.match(await refusal(server.url().replace(/postgres$/, "nowhere")), /does not exist/);
});

test("postgres: connections elsewhere are encrypted, and the server is verified", async () => {
  await using folder = await makeFolder();
  await makeCertificates(folder.path);
  const { cert, key } = await certificateOf(folder.path);
  await using server = await startPostgres({ files: { "server.crt": cert, "server.key": key } });
  const url = `${server.url()}?sslmode=verify-full`;
  await assert.rejects(open(url), /certificate|UnknownIssuer|self.signed/i);
  const trusted = `${url}&sslrootcert=${folder.path}/ca.crt`;
  // The certificate is for the name, and not for the address.
  await assert.rejects(open(trusted), /name|altnames|NotValidForName/i);
  const { kv } = await open(trusted.replace("@127.0.0.1", "@localhost"));
  assert.ok(await put(kv, "a"));
  const encrypted = await server.run("SELECT count(*) FROM pg_stat_ssl WHERE ssl");
  assert.ok(Number(encrypted) >= 1);
  kv.close();
});

async function makeCertificates(folder: string): Promise<void> {
  const run = async (...args: string[]) => {
    const { success, stderr } = await new Deno.Command("openssl", { args, cwd: folder }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
  };
  const ca = ["-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Test authority"];
  await run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...ca);
  const request = ["-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"];
  await run("req", "-newkey", "rsa:2048", "-nodes", ...request);
  await Deno.writeTextFile(`${folder}/names`, "subjectAltName=DNS:localhost");
  const signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"];
  await run("x509", "-req", "-in", "server.csr", "-out", "server.crt", "-days", "2", ...signed);
}

async function certificateOf(folder: string): Promise<{ cert: string; key: string }> {
  const [cert = "", key = ""] = await Promise.all(
    ["server.crt", "server.key"].map((name) => Deno.readTextFile(`${folder}/${name}`)),
  );
  return { cert, key };
}

/** Clients that keep a balance of 0 in sum, take what only one may take, and meet all the time. */
test("postgres: writers that meet all the time lose no update and share no claim", async () => {
  await using server = await startPostgres();
  const stores = await Promise.all(Array.from({ length: 4 }, () => open(server.url())));
  const claims = await stress(stores.map(({ kv }) => kv));
  assert.ok(claims > 20, `${claims} claims`);
  for (const { kv } of stores) kv.close();
});

const accounts = 6;
const stressMs = 4_000;

async function stress(stores: readonly Kv[]): Promise<number> {
  const bytes = (value: number) => new TextEncoder().encode(String(value));
  const valueOf = (value: Uint8Array | null) => value ? Number(new TextDecoder().decode(value)) : 0;
  const until = performance.now() + stressMs;
  const winners = new Map<string, number>();
  let doubleWinners = 0;
  let skewed = 0;
  const pick = (n: number) => Math.floor(Math.random() * n);

  /** Moves one from an account to another; absent ones are made, empty ones removed. */
  async function transfer(kv: Kv): Promise<void> {
    const [from, to] = [pick(accounts), pick(accounts)];
    if (from === to) return;
    const keys = [["account", from], ["account", to]];
    const rows = await kv.getMany(keys);
    const write = emptyWrite();
    for (const [at, row] of rows.entries()) {
      write.checks.push({ key: row.key, version: row.version });
      const value = valueOf(row.value) + (at === 0 ? -1 : 1);
      if (value === 0) write.deletes.push(row.key);
      else write.sets.push({ key: row.key, value: bytes(value) });
    }
    await kv.atomic(write);
  }

  /** Of two rows each may exist only while the other does not. */
  async function skew(kv: Kv): Promise<void> {
    const own = pick(2);
    const [mine, theirs] = await kv.getMany([["skew", own], ["skew", 1 - own]]);
    if (!mine || !theirs) return;
    if (mine.version && theirs.version) skewed++;
    const checks = [mine, theirs].map(({ key, version }) => ({ key, version }));
    if (mine.version) await kv.atomic({ ...emptyWrite(), checks, deletes: [mine.key] });
    else if (!theirs.version) {
      await kv.atomic({ ...emptyWrite(), checks, sets: [{ key: mine.key, value: bytes(1) }] });
    }
  }

  async function claim(kv: Kv): Promise<void> {
    const name = `claim-${Math.floor((performance.now() - until + stressMs) / 20)}`;
    const write = emptyWrite();
    write.checks.push({ key: [name], version: null });
    write.sets.push({ key: [name], value: bytes(1) });
    if (await kv.atomic(write) === null) return;
    if (winners.has(name)) doubleWinners++;
    winners.set(name, 1);
  }

  await Promise.all(
    stores.flatMap((kv) =>
      [transfer, transfer, skew, claim].map(async (work) => {
        while (performance.now() < until) await work(kv);
      })
    ),
  );
  const [kv] = stores;
  assert.ok(kv);
  const rows = await kv.list({ prefix: ["account"], limit: 100 });
  assert.equal(rows.reduce((sum, { value }) => sum + valueOf(value), 0), 0);
  assert.deepEqual({ doubleWinners, skewed }, { doubleWinners: 0, skewed: 0 });
  return winners.size;
}
