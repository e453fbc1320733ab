import assert from "node:assert/strict";
import { runFarebox } from "./support/command.ts";
import { makeFolder, refusedStart, serviceEnv, startFarebox } from "./support/process.ts";

Deno.test("start: the environment wins over .env, for the service and for its commands", async () => {
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
  assert.match(farebox.output(), /calls itself http:\/\/127\.0\.0\.1:9$/m);
  assert.equal((await farebox.call("/metrics", { key: metricsToken })).status, 200);
  const ran = await runFarebox(["verify"], { folder: folder.path, url: farebox.url });
  assert.equal(ran.code, 0, ran.complaint);
});

Deno.test("start: a .env that cannot be read is told, and one without sense is passed over", async () => {
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
