import assert from "node:assert/strict";
import { devApiKey } from "../../src/base/dev_keys.ts";
import { devProjectId } from "../../src/projects/auth.ts";
import { runFarebox } from "../support/command.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";

const root = new URL("../../", import.meta.url).pathname;

Deno.test("farebox: webhooks listen prints what arrives, and ends its subscription", async () => {
  await using folder = await makeFolder();
  const env = { ADMIN_KEY: serviceEnv.ADMIN_KEY };
  await using farebox = await startFarebox({ folder: folder.path, env, dev: true });
  const key = devApiKey;
  const listening = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--config", `${root}deno.json`, `${root}scripts/farebox.ts`]
      .concat("webhooks", "listen", devProjectId, "--event", "balance.deposit.created"),
    env: { FAREBOX_URL: farebox.url, ADMIN_KEY: env.ADMIN_KEY },
    cwd: folder.path,
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const errors = listening.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let said = "";
  while (!said.includes("Listening at")) {
    const { done, value } = await errors.read();
    assert.ok(!done, said);
    said += value;
  }
  const output = listening.stdout.pipeThrough(new TextDecoderStream()).getReader();
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "5" } });
  const { value: line = "" } = await output.read();
  assert.match(
    line,
    /^\d\d:\d\d:\d\d {2}balance\.deposit\.created +ada {2}5 {2}payment {2}\(evt_\w+\)\n$/,
  );
  listening.kill("SIGINT");
  for (let part = await errors.read(); !part.done; part = await errors.read()) said += part.value;
  assert.match(said, /The subscription and its key are removed\./);
  await output.cancel();
  assert.equal((await listening.status).code, 0);
  const { subscriptions } = await farebox.json("/v1/webhooks/subscriptions", { key });
  assert.deepEqual(subscriptions.map(({ isActive }: { isActive: boolean }) => isActive), [false]);
});

Deno.test("farebox: a project's prices are set one by one or from a file, and others stay", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  const run = (...args: string[]) => runFarebox(args, { folder: folder.path, url: farebox.url });
  const made = await run("projects", "create", "--name", "Shop");
  assert.match(made.complaint, /Try it:\ncurl .*\/v1\/chat\/completions/);
  const id = /^id +(\S+)$/m.exec(made.printed)?.[1] ?? assert.fail(made.printed);
  assert.equal((await run("webhooks", "list", id)).code, 0);
  const unknown = "sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
  const tested = await run("webhooks", "test", id, unknown, "--type", "balance.depleted");
  assert.deepEqual([tested.code, /subscription/.test(tested.complaint)], [1, true]);
  assert.match((await run("projects", "show", id)).printed, /^name +Shop$/m);
  await run("prices", "set", id, "gpt-4o", "--input", "3", "--output", "12");
  const listed = await run("prices", "list", id);
  assert.match(listed.printed, /gpt-4o +3 +12 +-/);
  assert.match(listed.complaint, /In usd per million tokens\. Other models are not served\./);
  const marked = await run("prices", "markup", id, "20");
  assert.equal(marked.printed, "Other models cost the catalogue's list price plus 20 %.\n");
  assert.equal((await run("prices", "markup", id, "--", "-5")).code, 1);
  const path = `${folder.path}/prices.json`;
  await Deno.writeTextFile(path, JSON.stringify({ small: { input: "0.1", output: "0.4" } }));
  assert.equal((await run("prices", "import", id, path)).code, 2, "it asks first");
  assert.equal((await run("prices", "import", id, path, "--yes")).code, 0);
  const { pricing } = JSON.parse((await run("projects", "get", id, "--json")).printed);
  assert.deepEqual(Object.keys(pricing.models).toSorted(), ["gpt-4o", "small"]);
  await Deno.writeTextFile(path, "[1]");
  const bad = await run("prices", "import", id, path, "--yes");
  assert.deepEqual([bad.code, /must contain a JSON object/.test(bad.complaint)], [2, true]);
  assert.equal((await run("--version")).printed.trim(), "0.9.0");
});
