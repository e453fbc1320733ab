import assert from "node:assert/strict";
import { readConfig } from "../../src/config/config.ts";
import {
  describeService,
  reportStart,
  reportUnpayable,
} from "../../src/platform/startup_report.ts";
import { devApiKey } from "../../src/base/dev_keys.ts";
import { devRequest } from "../../src/projects/dev_project.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { findCommand, testWith } from "../support/toolchains.ts";
import { createWorld } from "../support/world.ts";

const script = await findCommand("script");

function described(given: Record<string, string>, { dev }: { dev: boolean }): string {
  const environment = dev ? given : { ...serviceEnv, ...given };
  const url = "http://127.0.0.1:8000";
  const facts = { url, environment, devKey: devApiKey, devRequest: devRequest(url) };
  return describeService(readConfig(environment, { dev }), facts);
}

Deno.test("start: development shows a terminal where everything is, its key and a first request", () => {
  const text = described({}, { dev: true });
  assert.equal(
    text,
    `Farebox listens on http://127.0.0.1:8000

  mode      development, for this machine only
  console   http://127.0.0.1:8000/console (sign in with sk_dev, or as the operator with admin_dev)
  docs      http://127.0.0.1:8000/docs
  API key   sk_dev
  database  data/dev.kv
  upstream  simulated: the model sandbox/echo
  payments  simulated

Try it:
  curl http://127.0.0.1:8000/v1/chat/completions -H "Authorization: Bearer sk_dev" \\
    -H "Content-Type: application/json" \\
    -d '{"model":"sandbox/echo","user":"ada","messages":[{"role":"user","content":"Hello"}]}'
`,
  );
});

Deno.test("start: production shows a terminal what is on and off, and no secret", () => {
  const secrets = {
    KV_PATH: "postgres://farebox:password-of-it@db.test/farebox",
    METRICS_TOKEN: "token-of-the-metrics",
    UPSTREAM_URL: "https://api.test",
    UPSTREAM_API_KEY: "key-of-the-upstream",
    STRIPE_SECRET_KEY: "sk_test_of_the_server",
    STRIPE_WEBHOOK_SECRET: "whsec_of_the_server",
  };
  const text = described({ ...secrets, BASE_URL: "https://pay.test" }, { dev: false });
  assert.match(text, /^ {2}mode +production$/m);
  assert.match(text, /https:\/\/pay\.test\/console \(sign in with ADMIN_KEY, or a project's owner/);
  assert.match(text, /^ {2}database +postgres:\/\/farebox@db\.test/m);
  assert.match(text, /^ {2}upstream +https:\/\/api\.test\/v1$/m);
  assert.match(text, /^ {2}Stripe for wallets +on$/m);
  for (
    const secret of ["password-of-it", "token-of", "key-of", "whsec_", "sk_", serviceEnv.ADMIN_KEY]
  ) {
    assert.ok(!text.includes(secret), secret);
  }
});

Deno.test("start: for people, warnings are said once, and not logged as well", () => {
  const { ADMIN_KEY: _, ...environment } = { ...serviceEnv, LOGLEVEL: "debug" };
  const said: string[] = [];
  const logged: string[] = [];
  reportStart({
    config: readConfig(environment, { dev: false }),
    log: (_level, event) => logged.push(event),
  }, {
    environment,
    isNew: true,
    exposed: [],
    warning: null,
    sealing: null,
    forPeople: true,
    say: (text) => said.push(text),
  });
  assert.deepEqual(logged, []);
  assert.match(said.join("\n"), /^Warning: ADMIN_KEY is not set: .*^Warning: LOGLEVEL /ms);
  assert.doesNotMatch(said.join("\n"), /Farebox starts with/, "the table comes with the address");
});

Deno.test("start: projects whose users cannot pay are named, with what to do", async () => {
  using world = await createWorld();
  const found = await world.app.findUnpayable();
  assert.deepEqual(found.map(({ id }) => id), [world.projectId]);
  const said: string[] = [];
  const logged: unknown[] = [];
  const log = (level: string, event: string, fields = {}) => logged.push([level, event, fields]);
  reportUnpayable({ log }, [{ id: "pw_1", name: "App\x1b[2J" }], {
    forPeople: false,
    say: (text) => said.push(text),
  });
  assert.deepEqual(said, [
    'Warning: users of "App\\u{1b}[2J" cannot pay: connect Stripe, or set your own top-up page or checkout, in the console',
  ]);
  assert.deepEqual(logged, [["warn", "users_cannot_pay", { projects: ["pw_1"] }]]);
  const topUp = { checkoutUrl: "https://app.test/pay" };
  using paid = await createWorld({ project: { topUp } });
  assert.deepEqual(await paid.app.findUnpayable(), []);
  using own = await createWorld({ project: { topUpUrl: "https://app.test/topup" } });
  assert.deepEqual(await own.app.findUnpayable(), [], "links lead to its own page");
  using development = await createWorld({ dev: true });
  assert.deepEqual(await development.app.findUnpayable(), [], "its payments are simulated");
});

Deno.test("start: where there is no terminal, LOG_FORMAT=text chooses text, without colors", async () => {
  await using folder = await makeFolder();
  const env = { LOG_FORMAT: "text" };
  await using farebox = await startFarebox({ folder: folder.path, dev: true, env });
  await farebox.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "1" } });
  const model = "sandbox/echo";
  const messages = [{ role: "user", content: "Hi" }];
  await farebox.json("/v1/chat/completions", { body: { model, user: "ada", messages } });
  farebox.signal("SIGTERM");
  await farebox.ended;
  const output = farebox.output();
  assert.match(
    output,
    /^\d\d:\d\d:\d\d {2}POST {2}chat +200 +\d+ ms {2}ada +sandbox\/echo +\$0\.\d+$/m,
  );
  assert.doesNotMatch(output, /^\{/m, "no line is JSON");
  assert.ok(!output.includes("\x1b"));
});

testWith(script, "start: on a terminal, text in colors is what people get", async (path) => {
  await using folder = await makeFolder();
  const root = new URL("../../", import.meta.url);
  const command = `timeout 30 ${Deno.execPath()} task --quiet dev`;
  const child = new Deno.Command(path, {
    args: ["-qec", command, "/dev/null"],
    cwd: root,
    env: { KV_PATH: `${folder.path}/dev.kv`, PORT: "0", NO_COLOR: "" },
    stdin: "null",
    stdout: "piped",
  }).spawn();
  let seen = "";
  let url: string | undefined;
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    seen += piece;
    const listening = /listens on (http:\S+)\r?\n[^]*"Hello"/.exec(seen)?.[1];
    if (listening && !url) {
      url = listening;
      await (await fetch(url)).body?.cancel();
    }
    if (seen.includes("GET   /")) child.kill("SIGTERM");
  }
  await child.status;
  assert.match(seen, /^ {2}mode +development/m);
  assert.ok(seen.includes("\x1b[32m200\x1b[0m"), seen);
});
