import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { variableNames } from "../../src/config/config.ts";
import { sessionOptions } from "../../src/platform/postgres_sql.ts";
import { storeDeadlineMs } from "../../src/base/limits.ts";
import { assertPassesAtOnce, startHeldUpstream } from "../support/held_upstream.ts";
import { startNginx } from "../support/nginx.ts";
import { findPostgres, type PostgresServer, startPostgres } from "../support/postgres.ts";
import { eventually, freePort, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { caPath } from "../support/receiver.ts";
import { snippetOf, snippetsOf, textOf } from "../support/snippets.ts";
import { findCommand, testWith, type Toolchain } from "../support/toolchains.ts";
import { makeProject } from "../support/traffic.ts";

const programs = findPostgres();
const postgres: Toolchain = programs === null
  ? { missing: "there is no PostgreSQL" }
  : { path: programs };
const nginx = await findCommand("nginx", "/usr/sbin");
const both = "missing" in postgres ? postgres : nginx;

const example = (name: string) =>
  Deno.readTextFile(fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)));
const addresses = ["172.28.0.11:8000", "172.28.0.12:8000", "172.28.0.13:8000"];

/** The statements of the guide, for a server whose administrator has the role's name. */
async function statements(containing: RegExp): Promise<string[]> {
  const snippets = (await snippetsOf("postgres")).filter(({ mark }) => mark === "postgres");
  return snippets.filter(({ code }) => containing.test(code))
    .flatMap(({ code }) => code.split(/;\n?/)).filter((sql) => sql.trim() !== "")
    .map((sql) => sql.replaceAll(/\bfarebox\b/g, "shop"));
}

/** Creates the guide's role and database; returns their URL. */
async function createDatabase(server: PostgresServer): Promise<string> {
  for (const sql of await statements(/CREATE/)) await server.run(sql);
  return `postgres://shop:a-long-random-password@127.0.0.1:${server.port}/shop`;
}

testWith(
  both,
  "guides: on the guide's database, behind the example's nginx, processes answer for each other",
  async () => {
    await using server = await startPostgres();
    await using folder = await makeFolder();
    await using upstream = startHeldUpstream();
    const KV_PATH = await createDatabase(server);
    const env = { ...serviceEnv, KV_PATH, UPSTREAM_URL: upstream.url };
    await using first = await startFarebox({ folder: folder.path, env });
    await using second = await startFarebox({ folder: folder.path, env });
    const hosts = [new URL(first.url).host, new URL(second.url).host, `127.0.0.1:${freePort()}`];
    let guide = await example("nginx.conf");
    for (const [at, host] of hosts.entries()) guide = guide.replaceAll(addresses[at] ?? "", host);
    const path = "path" in nginx ? nginx.path : "";
    await using proxy = await startNginx(path, { guide, folder: folder.path });
    assert.match(await proxy.check(), /test is successful/);

    const key = await makeProject(first);
    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const call = (path: string, body: unknown) =>
      fetch(proxy.url + path, {
        client,
        signal: AbortSignal.timeout(10_000),
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const deposit = async () => {
      const response = await call("/v1/user/balance/deposit", { user: "ada", amount: "1" });
      assert.equal(response.status, 200, await response.text());
    };
    await deposit();
    const messages = [{ role: "user", content: "Hello" }];
    const chat = { model: "test-model", user: "ada", stream: true, messages };
    await assertPassesAtOnce(await call("/v1/chat/completions", chat), upstream);
    second.signal("SIGTERM");
    assert.equal((await second.ended).code, 0);
    for (let n = 0; n < 6; n++) await deposit();
    const balance = await first.json("/v1/user/balance?user=ada", { key });
    assert.match(JSON.stringify(balance), /"6\.9/);
  },
);

testWith(postgres, "guides: the server takes the statements about standbys and roles", async () => {
  await using server = await startPostgres();
  await createDatabase(server);
  for (const sql of await statements(/ALTER ROLE/)) await server.run(sql);
  for (const sql of await statements(/ALTER SYSTEM/)) await server.run(sql);
  const names = () => server.run("SHOW synchronous_standby_names");
  await eventually(async () => await names() === "ANY 1 (db_2, db_3)");
});

Deno.test("guides: behind PgBouncer the role has the settings that sessions ask for", async () => {
  const settings = (await statements(/ALTER ROLE/)).map((sql) =>
    sql.trim().replace("ALTER ROLE shop SET ", "").replace(" = ", "=").replaceAll("'", "")
  );
  const options = sessionOptions(storeDeadlineMs - 1_000).replaceAll("\\ ", "_").split(" -c ");
  const asked = options.map((option) =>
    option.replace("-c ", "").replace("_committed", " committed")
  );
  assert.deepEqual(settings, asked);
});

testWith(
  nginx,
  "guides: nginx as configured sends a user to one process, by header or path",
  async (path) => {
    await using folder = await makeFolder();
    const serve = (name: string) =>
      Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response(name));
    await using one = serve("one");
    await using two = serve("two");
    const server = (await example("nginx.conf")).replace(/^[^]*?(?=^server \{)/m, "");
    const guide = `${await snippetOf("postgres", "nginx")}\n${server}`
      .replace("10.0.0.11:8000", `127.0.0.1:${one.addr.port}`)
      .replace("10.0.0.12:8000", `127.0.0.1:${two.addr.port}`);
    await using proxy = await startNginx(path, { guide, folder: folder.path });
    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const asked = async (target: string, headers: Record<string, string> = {}) => {
      const names = new Set<string>();
      for (let n = 0; n < 20; n++) {
        names.add(await (await fetch(proxy.url + target, { client, headers })).text());
      }
      return [...names];
    };
    const users = Array.from({ length: 12 }, (_, n) => `user-${n}`);
    const reached = new Set<string>();
    for (const user of users) {
      const ofHeader = await asked("/v1/chat/completions", { "X-Service-User": user });
      assert.equal(ofHeader.length, 1, user);
      for (const call of ["chat/completions", "v1/messages", "responses"]) {
        assert.deepEqual(await asked(`/v1/${user}/${call}`), ofHeader, `${user} ${call}`);
      }
      reached.add(ofHeader[0] ?? "");
    }
    assert.equal(reached.size, 2);
    assert.equal((await asked("/v1/chat/completions")).length, 2);
  },
);

testWith(
  nginx,
  "guides: nginx as configured carries Deno's calls to a denokv server",
  async (path) => {
    await using folder = await makeFolder();
    await using kvServer = startKvServer();
    const guide = (await snippetOf("denokv", "nginx"))
      .replace("127.0.0.1:4512", kvServer.host).replaceAll("kv.example", "farebox.example");
    await using proxy = await startNginx(path, { guide, folder: folder.path });
    const code = `const kv = await Deno.openKv("${proxy.url}");
      console.log((await kv.get(["a"])).value); Deno.exit(0);`;
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--unstable-kv", "--cert", caPath, code],
      env: { DENO_KV_ACCESS_TOKEN: "a-token-of-the-store", NO_COLOR: "1" },
    }).output();
    assert.equal(textOf({ stdout, stderr }).trim(), "null");
    assert.deepEqual([...new Set(kvServer.paths)], ["/", "/v2/snapshot_read"]);
  },
);

/** A server of KV Connect that has no rows. */
function startKvServer() {
  const paths: string[] = [];
  const noRows = new Uint8Array([0x0a, 0x00, 0x20, 0x01, 0x40, 0x01]);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    await request.bytes();
    const { pathname } = new URL(request.url);
    paths.push(pathname);
    if (pathname !== "/") return new Response(noRows);
    return Response.json({
      version: 2,
      databaseId: "00000000-0000-0000-0000-000000000000",
      endpoints: [{ url: "/v2", consistency: "strong" }],
      token: "a-token-of-the-store",
      expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
    });
  });
  return {
    host: `127.0.0.1:${server.addr.port}`,
    paths,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("examples: compose.yaml sets known variables, has no secret, and knows nginx's addresses", async () => {
  const compose = await example("compose.yaml");
  const settings = [...compose.matchAll(/^ +([A-Z]+(?:_[A-Z]+)*): (.+)$/gm)];
  for (const [, name = "", value = ""] of settings) {
    const known = variableNames.includes(name) || /^POSTGRES_(USER|DB|PASSWORD)$/.test(name);
    assert.ok(known, name);
    if (/KEY|TOKEN|PASSWORD/.test(name)) assert.match(value, /^\$\{\w+:[?-][^}]*\}$/, name);
  }
  const names = settings.map(([, name]) => name);
  for (const name of ["KV_PATH", "BASE_URL", "SECRETS_KEY", "ADMIN_KEY", "TRUSTED_PROXIES"]) {
    assert.ok(names.includes(name), name);
  }
  assert.match(compose, /KV_PATH: postgres:\/\/farebox:\$\{POSTGRES_PASSWORD:/);
  const servers = [...(await example("nginx.conf")).matchAll(/^ +server (\S+:\d+)/gm)];
  const [all, parts] = [servers.slice(0, 3), servers.slice(3)];
  assert.deepEqual(all.map(([, address]) => address), addresses);
  assert.deepEqual(parts.map(([, address]) => address), addresses, "each is in one part");
  const given = [...compose.matchAll(/ipv4_address: (\S+)/g)].map(([, address]) => address);
  const proxy = /TRUSTED_PROXIES: (.+)\/32/.exec(compose)?.[1];
  assert.deepEqual(given, [...addresses.map((address) => address.replace(":8000", "")), proxy]);
});
