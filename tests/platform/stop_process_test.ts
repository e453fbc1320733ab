import assert from "node:assert/strict";
import { findPostgres, startPostgres } from "../support/postgres.ts";
import {
  eventually,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { testWith } from "../support/toolchains.ts";
import { ask, makeProject, readBooks, sleep, startSlowUpstream } from "../support/traffic.ts";

const connectionsCount = 16;

/** A connection that a caller keeps, and reads by hand. */
interface KeptConnection {
  /** Sends a request without a body; returns the head of the response, in small letters. */
  send(path: string, key: string): Promise<string>;
}

async function connect({ url }: Farebox, opened: DisposableStack): Promise<KeptConnection> {
  const { hostname, port } = new URL(url);
  const socket = opened.use(await Deno.connect({ hostname, port: Number(port) }));
  return {
    async send(path, key) {
      const head = `GET ${path} HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer ${key}\r\n\r\n`;
      await socket.write(new TextEncoder().encode(head));
      const bytes = new Uint8Array(65_536);
      const length = await socket.read(bytes);
      assert.notEqual(length, null, `${path}: the connection was closed without a response`);
      return new TextDecoder().decode(bytes.subarray(0, length ?? 0)).split("\r\n\r\n")[0]
        ?.toLowerCase() ?? "";
    },
  };
}

Deno.test("stop: calls on kept connections are answered, and each response closes its connection", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  using opened = new DisposableStack();
  const key = await makeProject(farebox);
  const balance = "/v1/user/balance?user=ada";
  const calls: [path: string, key: string, status: number][] = [
    [balance, key, 200],
    [balance, "sk_wrong", 401],
    ["/v1/models", key, 200],
    ["/none", key, 404],
    ["/docs", key, 200],
    ["/healthz", key, 200],
  ];
  const kept = await Promise.all(
    Array.from({ length: connectionsCount }, () => connect(farebox, opened)),
  );
  for (const connection of kept) {
    assert.doesNotMatch(await connection.send(balance, key), /connection: close/);
  }
  const idle = await connect(farebox, opened);
  await idle.send(balance, key);
  const probes = await connect(farebox, opened);
  assert.match(await probes.send("/readyz", key), /^http\/1.1 200 /);

  farebox.signal("SIGTERM");
  await eventually(() => farebox.output().includes('"stopping"'));
  assert.match(await probes.send("/readyz", key), /^http\/1.1 503 [^]*\nconnection: close/);
  await Promise.all(kept.map(async (connection, at) => {
    const [path, ownKey, status] = calls[at % calls.length] ?? [balance, key, 200];
    const head = await connection.send(path, ownKey);
    assert.match(head, new RegExp(`^http/1.1 ${status} `), path);
    assert.match(head, /\nconnection: close(\r|$)/, path);
  }));
  await sleep(2_500);
  // Clients keep idle connections for some seconds.
  assert.match(await idle.send(balance, key), /^http\/1.1 200 [^]*\nconnection: close/);
  const late = await connect(farebox, opened);
  assert.match(await late.send(balance, key), /^http\/1.1 200 [^]*\nconnection: close/);
  assert.equal((await farebox.ended).code, 0);
  assert.equal(farebox.errors(), "");
});

testWith(
  findPostgres() === null ? { missing: "there is no PostgreSQL" } : { path: "" },
  "stop: a call that runs for long beside other processes is answered and charged once",
  async () => {
    await using database = await startPostgres();
    await using folder = await makeFolder();
    // Longer than a process may be silent before others take it for dead.
    await using upstream = startSlowUpstream(() => 12_000);
    const env = { ...serviceEnv, KV_PATH: database.url(), UPSTREAM_URL: upstream.url };
    await using leaving = await startFarebox({ folder: folder.path, env });
    await using staying = await startFarebox({ folder: folder.path, env });
    const key = await makeProject(leaving);
    await leaving.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
    const answer = ask(leaving, { key, user: "ada", stream: false });
    await eventually(() => upstream.running === 1);
    leaving.signal("SIGTERM");
    assert.ok((await answer).ended);
    assert.equal((await leaving.ended).code, 0);
    const { entries, held } = await readBooks(staying, key, "ada");
    assert.deepEqual([entries.map(({ kind }) => kind), held], [["deposit", "usage"], "0"]);
  },
);
