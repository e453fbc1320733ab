import assert from "node:assert/strict";
import { Secret } from "../../src/base/secret.ts";
import { isLoopback, readConfig, variableNames, withVersion } from "../../src/config/config.ts";

const secret = "s3cret-value-that-must-not-be-told";
const secretsKey = btoa("0123456789abcdef0123456789abcdef");
const production = { BASE_URL: "https://farebox.test" };

const refused: [name: string, values: string[], beside?: Record<string, string>][] = [
  ["PORT", ["-1", "65536", "80a", "1e3", "0x50", " 80", "8000.5", "９"]],
  ["BASE_URL", [
    "farebox.test",
    "ftp://farebox.test",
    "//farebox.test",
    "https://",
    "https://farebox.test/?a=1",
    "https://farebox.test/#a",
    "https://user:pass@farebox.test",
    "https://user:12/34@farebox.test",
    "javascript:alert(1)",
  ]],
  ["ADMIN_KEY", [
    "a".repeat(31),
    `${"a".repeat(32)} b`,
    `${"a".repeat(32)}é`,
    `${"a".repeat(32)}\n`,
  ]],
  ["METRICS_TOKEN", ["m".repeat(15), `${"m".repeat(16)} b`, `${"m".repeat(16)}é`]],
  ["UPSTREAM_URL", [
    "api.test",
    "file:///x",
    "https://a:b@api.test",
    "https://a:1/b@api.test",
    "https://api.test/v1?key=1",
    "https://api.test/v1/chat/completions",
    "https://api.test/models/",
  ]],
  ["UPSTREAM_API_KEY", ["a b", "é", "a\nb"], { UPSTREAM_URL: "https://api.test/v1" }],
  ["UPSTREAM_API_KEY", [secret]],
  ["UPSTREAM_TIMEOUT_MS", ["999", "3600001", "1s", "-1", "Infinity"]],
  ["UPSTREAM_IDLE_MS", ["999", "3600001", "1s"]],
  ["SECRETS_KEY", [
    "short",
    secretsKey.slice(4),
    btoa(secretsKey),
    "not base64!".repeat(4),
    "é".repeat(44),
  ]],
  ["WEBHOOK_MAX_ATTEMPTS", ["0", "51", "many"]],
  ["WEBHOOK_BACKOFF_BASE_MS", ["9", "3600001"]],
  ["WEBHOOK_TIMEOUT_MS", ["99", "60001"]],
  ["WEBHOOK_ALLOW_CIDRS", ["10.0.0.0", "10.0.0.0/33", "::1/129", "all", "10.0.0.0/8/8"]],
  ["WEBHOOK_USE_PROXY", ["yes", "1", "TRUE"]],
  ["WEBHOOK_RETENTION_DAYS", ["0", "3651"]],
  ["LOG_LEVEL", ["loud", "INFO", "warning"]],
  ["LOG_FORMAT", ["xml", "JSON", "pretty"]],
  ["HOME_URL", ["app.test", "ftp://app.test", "https://app.test/?from=farebox"]],
  ["SMTP_URL", ["smtp.my.app", "http://smtp.my.app", "smtp://user@smtp.my.app", "smtp://h/path"], {
    SMTP_FROM: "a@b",
  }],
  ["SMTP_URL", ["smtp://u:p@h?tls=off", "smtp://u:%zz@h", "smtp://u:12/34@h", "smtp://u:1#2@h"], {
    SMTP_FROM: "a@b",
  }],
  ["SMTP_FROM", ["alerts", "Farebox alerts@my.app", "a@b\r\nBcc: c@d"], {
    SMTP_URL: "smtp://mail.test",
  }],
  ["HOME_URL", [production.BASE_URL, `${production.BASE_URL}/`]],
];

Deno.test("config: an invalid value is refused with its variable's name, and is not repeated", () => {
  for (const [name, values, beside] of refused) {
    for (const value of values) {
      const environment = { ...production, ...beside, [name]: value };
      assert.throws(
        () => readConfig(environment, { dev: false }),
        (error) => {
          assert.ok(error instanceof Error);
          assert.ok(error.message.includes(name), `${name}=${value}: ${error.message}`);
          assert.doesNotMatch(error.message, /expected|Invalid|Too /, "zod's words");
          if (value.length > 8) assert.ok(!error.message.includes(value), error.message);
          return true;
        },
        `${name}=${value}`,
      );
    }
  }
});

Deno.test("config: a variable with a fixed set of values names them, in plain words", () => {
  const words = {
    LOG_LEVEL: "must be debug, info, warn or error",
    LOG_FORMAT: "must be json or text",
    WEBHOOK_USE_PROXY: "must be true or false",
  };
  for (const [name, says] of Object.entries(words)) {
    const environment = { ...production, [name]: "loud" };
    assert.throws(() => readConfig(environment, { dev: false }), { message: `${name} ${says}` });
  }
});

Deno.test("config: every invalid variable is named at once", () => {
  const environment = {
    ...production,
    PORT: "x",
    LOG_LEVEL: "x",
    ADMIN_KEY: "x",
    SECRETS_KEY: "x",
  };
  assert.throws(() => readConfig(environment, { dev: false }), (error) => {
    assert.ok(error instanceof Error);
    for (const name of ["PORT", "LOG_LEVEL", "ADMIN_KEY", "SECRETS_KEY"]) {
      assert.ok(error.message.includes(name), error.message);
    }
    return true;
  });
});

Deno.test("config: production needs BASE_URL, and nothing else", () => {
  for (const environment of [{}, { BASE_URL: "" }, { HOST: "0.0.0.0" }]) {
    assert.throws(() => readConfig(environment, { dev: false }), /BASE_URL/);
  }
  assert.deepEqual(readConfig(production, { dev: false }), {
    dev: false,
    deploy: false,
    host: "127.0.0.1",
    port: 8000,
    baseUrl: "https://farebox.test",
    kvPath: "data/farebox.kv",
    kvPassword: null,
    adminKey: null,
    adminKeyOf: "setting",
    metricsToken: null,
    upstream: null,
    upstreams: null,
    upstreamTimeoutMs: 600_000,
    upstreamIdleMs: 120_000,
    upstreamEventBytesMax: 8_388_608,
    upstreamBodyBytesMax: 8_388_608,
    requestsMax: 5_000,
    bodiesBytesMax: 256 * 1024 * 1024,
    secretsKeys: [],
    stripe: null,
    webhooks: {
      attemptsMax: 8,
      backoffBaseMs: 30_000,
      timeoutMs: 15_000,
      allowCidrs: [],
      useProxy: false,
      retentionDays: 30,
    },
    trustedProxies: [],
    homeUrl: null,
    mail: null,
    logLevel: "info",
    logFormat: null,
  });
});

Deno.test("config: on Deno Deploy the database is the platform's, and never a file", () => {
  const environment = { ...production, DENO_DEPLOY: "true", SECRETS_KEY: secretsKey };
  const { deploy, kvPath, host } = readConfig(environment, { dev: false });
  assert.deepEqual({ deploy, kvPath, host }, {
    deploy: true,
    kvPath: "",
    host: "0.0.0.0",
  });
  for (const KV_PATH of ["file:///tmp/farebox.kv", "mysql://kv.test/farebox", "s3://kv.test"]) {
    assert.throws(
      () => readConfig({ ...environment, KV_PATH }, { dev: false }),
      /KV_PATH must be the path of a file/,
    );
  }
  const elsewhere = readConfig({ ...environment, KV_PATH: "https://kv.test" }, { dev: false });
  assert.equal(elsewhere.kvPath, "https://kv.test");
  assert.throws(
    () => readConfig({ ...environment, KV_PATH: "data/farebox.kv" }, { dev: false }),
    /KV_PATH must not be a file/,
  );
});

Deno.test("config: given values are used, and frozen", () => {
  const config = readConfig({
    HOST: "0.0.0.0",
    PORT: "0",
    BASE_URL: "https://farebox.test/pay//",
    KV_PATH: "https://kv.test",
    ADMIN_KEY: "a".repeat(32),
    METRICS_TOKEN: "m".repeat(16),
    UPSTREAM_URL: "https://api.test",
    UPSTREAM_API_KEY: secret,
    UPSTREAMS: "{}",
    UPSTREAM_TIMEOUT_MS: "1000",
    UPSTREAM_IDLE_MS: "3600000",
    REQUESTS_MAX: "200",
    BODIES_BYTES_MAX: "100000000",
    SECRETS_KEY: secretsKey,
    STRIPE_SECRET_KEY: "sk_test_of_the_server",
    STRIPE_WEBHOOK_SECRET: "whsec_of_the_server",
    WEBHOOK_MAX_ATTEMPTS: "14",
    WEBHOOK_BACKOFF_BASE_MS: "1000",
    WEBHOOK_TIMEOUT_MS: "5000",
    WEBHOOK_ALLOW_CIDRS: "10.0.0.0/8, fd00::/8",
    WEBHOOK_USE_PROXY: "true",
    WEBHOOK_RETENTION_DAYS: "7",
    LOG_LEVEL: "debug",
    LOG_FORMAT: "text",
    HOME_URL: "https://app.test/",
    SMTP_URL: "smtp://farebox:p%40ss@smtp.test",
    SMTP_FROM: "Farebox <alerts@app.test>",
    PATH: "/usr/bin",
    FAREBOX_UNKNOWN: "1",
  }, { dev: false });
  assert.deepEqual(config, {
    dev: false,
    deploy: false,
    host: "0.0.0.0",
    port: 0,
    baseUrl: "https://farebox.test/pay",
    kvPath: "https://kv.test",
    kvPassword: null,
    adminKey: new Secret("a".repeat(32)),
    adminKeyOf: "setting",
    metricsToken: new Secret("m".repeat(16)),
    upstream: { url: "https://api.test/v1", apiKey: new Secret(secret) },
    upstreams: { setting: "UPSTREAMS", json: new Secret("{}"), keyNames: [], hasKeys: false },
    upstreamTimeoutMs: 1000,
    upstreamIdleMs: 3_600_000,
    upstreamEventBytesMax: 8_388_608,
    upstreamBodyBytesMax: 8_388_608,
    requestsMax: 200,
    bodiesBytesMax: 100_000_000,
    secretsKeys: [new Secret(secretsKey)],
    stripe: {
      secretKey: new Secret("sk_test_of_the_server"),
      webhookSecret: new Secret("whsec_of_the_server"),
    },
    webhooks: {
      attemptsMax: 14,
      backoffBaseMs: 1000,
      timeoutMs: 5000,
      allowCidrs: ["10.0.0.0/8", "fd00::/8"],
      useProxy: true,
      retentionDays: 7,
    },
    trustedProxies: [],
    logLevel: "debug",
    logFormat: "text",
    homeUrl: "https://app.test",
    mail: {
      host: "smtp.test",
      port: 587,
      implicitTls: false,
      user: "farebox",
      password: new Secret("p@ss"),
      from: "Farebox <alerts@app.test>",
    },
  });
  assert.ok(Object.isFrozen(config));
  assert.deepEqual(
    [config.adminKey, config.upstream?.apiKey, ...config.secretsKeys].map((key) => key?.reveal()),
    [
      "a".repeat(32),
      secret,
      secretsKey,
    ],
  );
});

Deno.test("config: an empty variable is not set", () => {
  const empty = Object.fromEntries(variableNames.map((name) => [name, ""]));
  const config = readConfig({ ...empty, ...production }, { dev: false });
  assert.deepEqual(config, readConfig(production, { dev: false }));
});

const notLoopback = [
  "0.0.0.0",
  "::",
  "192.168.1.5",
  "10.0.0.1",
  "example.com",
  "localhost.example.com",
  "127.0.0.1.example.com",
  "1127.0.0.1",
  "128.0.0.1",
  "",
  "::2",
];

Deno.test("config: development starts on loopback only", () => {
  for (const host of notLoopback.filter((name) => name !== "")) {
    assert.throws(() => readConfig({ HOST: host }, { dev: true }), /HOST/, host);
  }
  for (
    const url of [
      "https://farebox.test",
      "http://0.0.0.0:8000",
      "http://192.168.1.5:8000",
      "http://localhost.example.com",
      "http://127.0.0.1.example.com",
    ]
  ) {
    assert.throws(() => readConfig({ BASE_URL: url }, { dev: true }), /BASE_URL/, url);
  }
  for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1"]) {
    assert.equal(readConfig({ HOST: host }, { dev: true }).host, host);
  }
  for (const url of ["http://localhost:8000", "http://127.0.0.1:9", "http://[::1]:8000"]) {
    assert.equal(readConfig({ BASE_URL: url }, { dev: true }).baseUrl, url);
  }
});

Deno.test("config: development needs no settings, and keeps its own database", () => {
  const config = readConfig({}, { dev: true });
  assert.equal(config.dev, true);
  assert.equal(config.baseUrl, "http://localhost:8000");
  assert.equal(config.kvPath, "data/dev.kv");
  assert.equal(atob(config.secretsKeys[0]?.reveal() ?? "").length, 32);
  assert.equal(config.adminKey?.reveal(), "admin_dev");
  const own = "a".repeat(32);
  assert.equal(readConfig({ ADMIN_KEY: own }, { dev: true }).adminKey?.reveal(), own);
  const known = { BASE_URL: "https://pay.example", ADMIN_KEY: "admin_dev" };
  assert.throws(() => readConfig(known, { dev: false }), /at least 32 characters/);
  assert.equal(readConfig({ PORT: "9000" }, { dev: true }).baseUrl, "http://localhost:9000");
});

Deno.test("config: development with a real key has a random operator's key, or none", () => {
  const upstream = { UPSTREAM_URL: "https://api.test" };
  const UPSTREAMS = (apiKey?: unknown) =>
    JSON.stringify({ upstreams: { main: { url: "https://api.test", apiKey } } });
  const stripe = { STRIPE_SECRET_KEY: "sk_live_1", STRIPE_WEBHOOK_SECRET: "whsec_1" };
  const real: Record<string, string>[] = [
    { ...upstream, UPSTREAM_API_KEY: "sk-real" },
    { UPSTREAMS: UPSTREAMS("sk-real") },
    { UPSTREAMS: UPSTREAMS({ env: "OPENAI_API_KEY" }), OPENAI_API_KEY: "sk-real" },
    stripe,
  ];
  const newAdminKey = () => "random";
  for (const environment of real) {
    const made = readConfig(environment, { dev: true, newAdminKey });
    assert.deepEqual([made.adminKey?.reveal(), made.adminKeyOf], ["random", "start"]);
    assert.equal(readConfig(environment, { dev: true }).adminKey, null);
    const own = { ...environment, ADMIN_KEY: "a".repeat(32) };
    assert.equal(readConfig(own, { dev: true, newAdminKey }).adminKeyOf, "setting");
  }
  for (const environment of [{}, upstream, { UPSTREAMS: UPSTREAMS() }]) {
    const known = readConfig(environment, { dev: true, newAdminKey });
    assert.deepEqual([known.adminKey?.reveal(), known.adminKeyOf], ["admin_dev", "development"]);
  }
  assert.equal(readConfig(production, { dev: false, newAdminKey }).adminKey, null);
});

Deno.test("config: a host is loopback only by its exact name or address", () => {
  for (const host of ["localhost", "127.0.0.1", "127.255.255.254", "::1", "[::1]"]) {
    assert.equal(isLoopback(host), true, host);
  }
  for (const host of notLoopback) assert.equal(isLoopback(host), false, host);
});

Deno.test("config: a bare upstream host means its /v1", () => {
  const addresses: [given: string, used: string][] = [
    ["https://api.test", "https://api.test/v1"],
    ["https://api.test/", "https://api.test/v1"],
    ["https://api.test/v1", "https://api.test/v1"],
    ["https://api.test/openai/v2", "https://api.test/openai/v2"],
  ];
  for (const [given, used] of addresses) assert.equal(withVersion(given), used);
});

Deno.test("config: the password of a PostgreSQL database is kept apart from its URL", () => {
  const environment = { ...production, SECRETS_KEY: secretsKey };
  const KV_PATH = "postgres://farebox:p%40ss@db.test,db2.test:6432/money?sslmode=verify-full";
  const { kvPath, kvPassword } = readConfig({ ...environment, KV_PATH }, { dev: false });
  assert.equal(kvPath, "postgres://farebox@db.test,db2.test:6432/money?sslmode=verify-full");
  assert.equal(kvPassword?.reveal(), "p@ss");
});

Deno.test("config: a store that processes share needs SECRETS_KEY", () => {
  for (const KV_PATH of ["postgres://me@db.test/money", "https://kv.test"]) {
    assert.throws(() => readConfig({ ...production, KV_PATH }, { dev: false }), /SECRETS_KEY is/);
  }
});

Deno.test("config: the default of BODIES_BYTES_MAX follows the memory of the process", () => {
  const mebibyte = 1024 * 1024;
  const bodiesOf = (memoryBytes: number | null, env = {}) =>
    readConfig({ BASE_URL: "https://farebox.test", ...env }, { dev: false, memoryBytes })
      .bodiesBytesMax / mebibyte;
  const sizes = [128, 512, 1024, 2048, 4096, 65_536].map((size) => bodiesOf(size * mebibyte));
  assert.deepEqual(sizes, [20, 32, 96, 224, 256, 256]);
  assert.equal(bodiesOf(null), 256);
  const set = { BODIES_BYTES_MAX: String(100 * mebibyte) };
  assert.equal(bodiesOf(512 * mebibyte, set), 100);
});
