import assert from "node:assert/strict";
import { parseEnv } from "node:util";
import { readConfig, variableNames } from "../../src/config/config.ts";
import { reportStart } from "../../src/platform/startup_report.ts";
import { findUnknownVariables } from "../../src/platform/variable_names.ts";
import {
  eventually,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";

const root = new URL("../../", import.meta.url);
const example = parseEnv(await Deno.readTextFile(new URL(".env.example", root)));

/** What a start in production says with this environment. */
function reported(
  given: Record<string, string>,
  { isNew = false, warning = null as string | null } = {},
) {
  const environment = { ...serviceEnv, ...given };
  const config = readConfig(environment, { dev: false });
  const said: string[] = [];
  const logged: Record<string, unknown>[] = [];
  const log = (level: string, event: string, fields = {}) =>
    logged.push({ level, event, ...fields });
  const facts = { environment, isNew, exposed: [], warning, sealing: null, forPeople: false };
  reportStart({ config, log }, { ...facts, say: (text) => said.push(text) });
  return { said: said.join("\n"), logged };
}

Deno.test("start: the values of the example file and of the guides are refused until filled in", () => {
  const filled: Record<string, string> = { ...serviceEnv };
  const refused: [string, string][] = [
    ["BASE_URL", String(example.BASE_URL)],
    ["BASE_URL", "https://farebox.example/pay"],
    ["BASE_URL", "https://example.com"],
    ["ADMIN_KEY", "at-least-32-characters-from-a-password-generator"],
    ["ADMIN_KEY", "<a long random string of 32 characters>".replaceAll(" ", "-")],
    ["ADMIN_KEY", "change-me-change-me-change-me-change-me"],
    ["METRICS_TOKEN", "your-token-goes-here"],
    ["SECRETS_KEY", btoa("farebox development secrets key!")],
    ["SECRETS_KEY", "…"],
  ];
  for (const [name, value] of refused) {
    assert.throws(
      () => readConfig({ ...filled, [name]: value }, { dev: false }),
      new RegExp(`^Error: ${name} `),
      `${name}=${value}`,
    );
  }
  const stripe = { STRIPE_SECRET_KEY: "sk_live_...", STRIPE_WEBHOOK_SECRET: "whsec_..." };
  assert.throws(
    () => readConfig({ ...filled, ...stripe }, { dev: false }),
    /STRIPE_WEBHOOK_SECRET/,
  );
  const upstream = { UPSTREAM_URL: "http://127.0.0.1:11434", UPSTREAM_API_KEY: "sk-..." };
  assert.throws(() => readConfig({ ...filled, ...upstream }, { dev: false }), /UPSTREAM_API_KEY/);
  readConfig({ ...filled, ...upstream, UPSTREAM_API_KEY: "changeme" }, { dev: false });
});

Deno.test("start: the example file lists every setting", async () => {
  const text = await Deno.readTextFile(new URL(".env.example", root));
  const named = [...text.matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name);
  assert.deepEqual(named.sort(), [...variableNames].sort());
});

const misspelt: Record<string, string> = {
  ADMIN_KYE: "ADMIN_KEY",
  ADMINKEY: "ADMIN_KEY",
  admin_key: "ADMIN_KEY",
  KEY_ADMIN: "ADMIN_KEY",
  FAREBOX_ADMIN_KEY: "ADMIN_KEY",
  BASEURL: "BASE_URL",
  BASE_URI: "BASE_URL",
  KV_PTAH: "KV_PATH",
  LOGLEVEL: "LOG_LEVEL",
  MAX_REQUESTS: "REQUESTS_MAX",
  METRIC_TOKEN: "METRICS_TOKEN",
  SECRET_KEY: "SECRETS_KEY",
  STRIPE_KEY: "STRIPE_SECRET_KEY",
  UPSTREAM_KEY: "UPSTREAM_API_KEY",
  UPSTREAM_BASE_URL: "UPSTREAM_URL",
  WEBHOOK_TIMEOUT: "WEBHOOK_TIMEOUT_MS",
  HTPS_PROXY: "HTTPS_PROXY",
};

Deno.test("start: a misspelt setting is named, with the one that was probably meant", () => {
  const found = findUnknownVariables(Object.keys(misspelt));
  const meant = found.map(({ name, didYouMean }) => [name, didYouMean]);
  assert.deepEqual(Object.fromEntries(meant), misspelt);
  assert.deepEqual(findUnknownVariables(["WEBHOOK_COLOR"]), [
    { name: "WEBHOOK_COLOR", didYouMean: null },
  ]);
});

Deno.test("start: variables of other programs are left alone", () => {
  const foreign =
    "PATH HOME HOSTNAME USER SHELL TERM LANG PWD LOGNAME TZ CI DEBUG LINES _ NODE_ENV " +
    "DATABASE_URL API_KEY API_URL OPENAI_API_KEY OPENAI_BASE_URL PUBLIC_URL BASE_DIR DENO_DIR " +
    "SSH_TTY S3_KEY XDG_DATA_DIRS REQUESTS_CA_BUNDLE FTP_PROXY http_proxy no_proxy " +
    "FAREBOX_PORT FAREBOX_PORT_8000_TCP FAREBOX_SERVICE_HOST FAREBOX_SERVICE_PORT_HTTP " +
    "KUBERNETES_PORT INVOCATION_ID JOURNAL_STREAM STATE_DIRECTORY FAREBOX_URL DENO_CERT";
  assert.deepEqual(findUnknownVariables([...foreign.split(" "), ...variableNames]), []);
});

Deno.test("start: it states what is on and off, in the log too, and repeats no secret", () => {
  const secrets = { METRICS_TOKEN: "token-of-the-metrics", UPSTREAM_API_KEY: "key-of-upstream" };
  const proxy = { HTTPS_PROXY: "http://name:password@proxy.test:3128" };
  const env = { ...secrets, ...proxy, UPSTREAM_URL: "https://models.test" };
  const { said, logged } = reported({ ...env, BASE_URL: "https://farebox.test" });
  for (
    const line of [
      /^ +base URL +https:\/\/farebox\.test$/m,
      /^ +admin API +on$/m,
      /^ +metrics +on$/m,
      /^ +stored secrets +on$/m,
      /^ +upstream +https:\/\/models\.test\/v1$/m,
      /^ +upstream proxy +on$/m,
      /^ +Stripe for wallets +off \(STRIPE_SECRET_KEY is not set\)$/m,
    ]
  ) assert.match(said, line);
  assert.deepEqual(logged.map(({ level, event }) => [level, event]), [["info", "starting"]]);
  const everything = said + JSON.stringify(logged);
  const hidden = [
    ...Object.values(secrets),
    "password",
    serviceEnv.ADMIN_KEY,
    serviceEnv.SECRETS_KEY,
  ];
  for (const secret of hidden) assert.ok(!everything.includes(secret), secret);
});

Deno.test("start: production without its keys, or with an unsafe URL, is told what follows", () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ ADMIN_KEY: "" }, /ADMIN_KEY is not set: the admin API is off/],
    [{ SECRETS_KEY: "" }, /SECRETS_KEY is not set: webhook secrets .* cannot be stored/],
    [{ BASE_URL: "http://127.0.0.1:8000" }, /BASE_URL leads to this machine only/],
    [{ BASE_URL: "http://farebox.test" }, /BASE_URL is http:\/\/ at a public host/],
    [{ BASE_URL: "http://8.8.8.8" }, /BASE_URL is http:\/\/ at a public host/],
    [{ UPSTREAM_URL: "http://models.test/v1" }, /UPSTREAM_URL is http:\/\/ at a public host/],
  ];
  const ready = { BASE_URL: "https://farebox.test" };
  assert.doesNotMatch(reported(ready).said, /Warning/);
  for (const host of ["10.0.0.5", "farebox", "farebox.internal", "[fd00::1]"]) {
    assert.doesNotMatch(reported({ BASE_URL: `http://${host}:8000` }).said, /Warning/, host);
  }
  for (const [env, told] of cases) {
    const { said, logged } = reported({ ...ready, ...env });
    assert.match(said, told);
    const [name] = Object.keys(env);
    const warned = logged.filter(({ level }) => level === "warn").map(({ setting }) => setting);
    assert.deepEqual(warned, [name]);
  }
});

Deno.test("start: a new database and a misspelt setting are reported, an existing database is not", async () => {
  await using folder = await makeFolder();
  const created = new RegExp(`"database_created","kvPath":"${folder.path}/farebox\\.kv"`);
  {
    const env = { ...serviceEnv, METRIC_TOKEN: "a-token-that-is-not-read" };
    await using first = await startFarebox({ folder: folder.path, env });
    assert.equal((await first.call("/healthz")).status, 200);
    first.signal("SIGTERM");
    assert.equal((await first.ended).code, 0);
    assert.match(first.output(), created);
    assert.match(first.output(), /KV_PATH \S+farebox\.kv did not exist: a new, empty database/);
    assert.match(first.output(), /METRIC_TOKEN is not a setting .*Did you mean METRICS_TOKEN\?/);
    assert.doesNotMatch(first.output(), /a-token-that-is-not-read/);
  }
  await using again = await startFarebox({ folder: folder.path, env: serviceEnv });
  await eventually(() => again.output().includes('"event":"starting"'));
  assert.doesNotMatch(again.output(), /database_created|did not exist/);
});

Deno.test("start: the example file, copied and not filled in, does not start", async () => {
  await using folder = await makeFolder();
  await Deno.copyFile(new URL(".env.example", root), `${folder.path}/.env`);
  const { code, complaint } = await refusedStart({ folder: folder.path });
  assert.equal(code, 1);
  assert.match(complaint, /^Farebox cannot start:\nBASE_URL is still that of the example/);
});
