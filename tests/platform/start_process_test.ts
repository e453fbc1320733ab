import assert from "node:assert/strict";
import { filesIn } from "../support/backups.ts";
import { runFarebox } from "../support/command.ts";
import {
  eventually,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { receiverEnv, startReceiver } from "../support/receiver.ts";
import { makeProject, sleep } from "../support/traffic.ts";

Deno.test("start: the environment takes precedence over .env, for the service and for its commands", async () => {
  await using folder = await makeFolder();
  const metricsToken = "a-token-of-the-file";
  const lines = [
    "BASE_URL=http://of-the-file.example",
    "ADMIN_KEY=another-key-of-at-least-32-characters",
    "PORT=none",
    `METRICS_TOKEN=${metricsToken}`,
    "SECRETS_KEY=not-a-key",
  ];
  await Deno.writeTextFile(`${folder.path}/.env`, lines.join("\n"));
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  assert.match(farebox.output(), /\(public URL: http:\/\/127\.0\.0\.1:9\)$/m);
  assert.equal((await farebox.call("/metrics", { key: metricsToken })).status, 200);
  const ran = await runFarebox(["verify"], { folder: folder.path, url: farebox.url });
  assert.equal(ran.code, 0, ran.complaint);
});

Deno.test("start: development beside a service's .env does not use its database and URL", async () => {
  await using folder = await makeFolder();
  const lines = ["KV_PATH=farebox.kv", "BASE_URL=https://farebox.example", "LOG_LEVEL=error"];
  await Deno.writeTextFile(`${folder.path}/.env`, lines.join("\n"));
  const options = { folder: folder.path, dev: true };
  await using farebox = await startFarebox({ ...options, env: { KV_PATH: "" } });
  await farebox.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "1" } });
  assert.match(farebox.output(), /listens on http:\/\/localhost:/);
  assert.doesNotMatch(farebox.output(), /"level":"info"/, "the rest of the file counts");
  assert.deepEqual(filesIn(folder.path), [".env", "data"]);
  assert.ok(filesIn(`${folder.path}/data`).includes("dev.kv"));
});

Deno.test("start: an unreadable .env is reported, and unknown lines are ignored", async () => {
  await using folder = await makeFolder();
  const path = `${folder.path}/.env`;
  await Deno.mkdir(path);
  const { code, complaint } = await refusedStart({ folder: folder.path, env: serviceEnv });
  assert.equal(code, 1);
  assert.match(complaint, /^Farebox cannot start:\n\.env cannot be read: Is a directory.*\n$/);
  const ran = await runFarebox(["verify"], { folder: folder.path });
  assert.deepEqual([ran.code, /^\.env cannot be read: .*\n$/.test(ran.complaint)], [2, true]);
  await Deno.remove(path);
  await Deno.writeTextFile(path, "no line of settings\n=x\nLOG_LEVEL='loud'\n");
  const loud = await refusedStart({ folder: folder.path, env: serviceEnv });
  assert.match(loud.complaint, /^Farebox cannot start:\nLOG_LEVEL /);
});

Deno.test("start: an address that cannot be used to listen is reported by its setting", async () => {
  await using folder = await makeFolder();
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const cases: [Record<string, string>, RegExp][] = [
    [{ PORT: String(taken.addr.port) }, /^PORT \d+ is in use by another process\. .*PORT$/],
    [{ HOST: "192.0.2.5" }, /^HOST 192\.0\.2\.5 is not an address of this machine$/],
    [{ HOST: "farebox.invalid" }, /^HOST farebox\.invalid cannot be used to listen: /],
    [{ HOST: "a b" }, /^HOST a b cannot be used to listen: /],
  ];
  for (const [env, told] of cases) {
    await assertRefused(folder.path, { ...serviceEnv, ...env }, told);
  }
});

Deno.test("start: an IPv6 address is printed as in a link", {
  ignore: !hasIpv6(),
}, async () => {
  await using folder = await makeFolder();
  const env = { ...serviceEnv, HOST: "::1" };
  await using farebox = await startFarebox({ folder: folder.path, env });
  assert.match(farebox.url, /^http:\/\/\[::1\]:\d+$/);
  assert.equal((await farebox.call("/healthz")).status, 200);
});

function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("start: a database that cannot be opened is reported by its setting", async () => {
  await using folder = await makeFolder();
  const at = (name: string) => `${folder.path}/${name}`;
  await Deno.mkdir(at("folder"));
  await Deno.writeTextFile(at("text.kv"), "This is no database. ".repeat(1_000));
  const cases: [string, RegExp][] = [
    ["/proc/farebox.kv", /^KV_PATH \/proc\/farebox\.kv cannot be written: /],
    ["/proc/none/farebox.kv", /^KV_PATH \/proc\/none\/farebox\.kv cannot be written: /],
    [at("text.kv/farebox.kv"), /^KV_PATH \S+ cannot be written: .*mkdir/],
    [at("folder"), /^KV_PATH \S+folder is a folder. Name a file in it$/],
    [at("text.kv"), /^KV_PATH \S+text\.kv cannot be opened as a database: file is not a database$/],
    ["https://127.0.0.1:9", /^DENO_KV_ACCESS_TOKEN is required, because KV_PATH is /],
    ["ftp://127.0.0.1:9", /^KV_PATH must be the path of a file, /],
  ];
  for (const [KV_PATH, told] of cases) {
    await assertRefused(folder.path, { ...serviceEnv, KV_PATH }, told);
  }
});

/** It prints the reason in one line, and exits with 1. */
async function assertRefused(folder: string, env: Record<string, string>, told: RegExp) {
  const { code, complaint } = await refusedStart({ folder, env });
  const [head, why = "", ...more] = complaint.split("\n");
  assert.deepEqual([code, head, more], [1, "Farebox cannot start:", [""]], complaint);
  assert.match(why, told);
}

Deno.test("start: with a SECRETS_KEY that decrypts nothing, no delivery is attempted", async () => {
  await using folder = await makeFolder();
  await using receiver = startReceiver();
  receiver.answer = () => new Response("no", { status: 500 });
  const env = { ...serviceEnv, ...receiverEnv, WEBHOOK_BACKOFF_BASE_MS: "2000" };
  await using begun = await startFarebox({ folder: folder.path, env });
  // Checking the secrets goes through all of these, which leaves time for an invalid attempt.
  for (let n = 0; n < 19; n++) await makeProject(begun);
  const key = await makeProject(begun);
  const subscription = { url: receiver.url, events: ["*"] };
  for (let n = 0; n < 20; n++) {
    await begun.json("/v1/webhooks/subscriptions", { key, body: subscription });
  }
  for (const user of ["ada", "bob", "cyd"]) {
    await begun.json("/v1/user/balance/deposit", { key, body: { user, amount: "1" } });
  }
  await eventually(async () => {
    const { logs } = await begun.json("/v1/webhooks/logs", { key });
    return logs.length >= 3 && logs.every(({ attempts }: { attempts: number }) => attempts >= 1);
  });
  begun.signal("SIGKILL");
  await begun.ended;
  // By then the store's queue has a message, which wakes its listener.
  await sleep(4_000);
  const wrong = { ...env, SECRETS_KEY: btoa("fedcba9876543210fedcba9876543210") };
  const { code, complaint, log } = await refusedStart({ folder: folder.path, env: wrong });
  assert.deepEqual([code, log], [1, ""], complaint);
  assert.match(complaint, /cannot start:\nSECRETS_KEY decrypts none of the secrets/);
});

Deno.test("start: the file of UPSTREAMS_FILE is read, or what is wrong with it is reported", async () => {
  await using folder = await makeFolder();
  const path = `${folder.path}/upstreams.json`;
  const env = { ...serviceEnv, UPSTREAMS_FILE: path, UPSTREAM_MAIN_KEY: "its-key" };
  const missing = await refusedStart({ folder: folder.path, env });
  assert.match(
    missing.complaint,
    /cannot start:\nUPSTREAMS_FILE .*upstreams\.json cannot be read: /,
  );
  await Deno.writeTextFile(path, '{"upstreams":{"main":{"apiKey":{"env":"UPSTREAM_MAIN_KEY"}}}}');
  const faulty = await refusedStart({ folder: folder.path, env });
  assert.match(
    faulty.complaint,
    /cannot start:\nUPSTREAMS_FILE: 'upstreams\.main\.url' is required/,
  );
  const main = { provider: "openai", apiKey: { env: "UPSTREAM_MAIN_KEY" } };
  await Deno.writeTextFile(path, JSON.stringify({ upstreams: { main } }));
  await using farebox = await startFarebox({ folder: folder.path, env });
  assert.match(farebox.output(), /^ +upstreams for all projects +UPSTREAMS_FILE$/m);
  assert.doesNotMatch(farebox.output(), /its-key|UPSTREAM_MAIN_KEY/);
});
