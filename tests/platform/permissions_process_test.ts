import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { dataFolders } from "../../scripts/data_folders.ts";
import { runFarebox } from "../support/command.ts";
import {
  databaseOf,
  eventually,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { receiverEnv, startReceiver } from "../support/receiver.ts";
import { makeProject } from "../support/traffic.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { tasks } = JSON.parse(await Deno.readTextFile(`${root}deno.json`));
const isPosix = Deno.build.os !== "windows";

const modesIn = (folder: string) =>
  [...Deno.readDirSync(folder)].filter(({ isFile }) => isFile).map(({ name }) => {
    const { mode } = Deno.statSync(`${folder}/${name}`);
    return [name, ((mode ?? 0) & 0o777).toString(8)];
  });

Deno.test("permissions: files are read in two folders, written in one, and no code is fetched", () => {
  for (const name of ["start", "dev", "compile"]) {
    const args: string[] = tasks[name].command.split(" && deno ").at(-1).split(" ");
    assert.ok(args.includes("--no-remote"), name);
    assert.ok(args.includes("--no-prompt"), name);
    const granted = args.filter((arg) =>
      /allow-(all|read|write|run|ffi|sys|import)|^-A$/.test(arg)
    );
    assert.deepEqual(granted.map((arg) => arg.replaceAll('"', "")), [
      "--allow-sys=systemMemoryInfo",
      `--allow-read=.,${name === "compile" ? "data" : "$folders"}`,
      `--allow-write=${name === "compile" ? "data" : "$folders"}`,
    ]);
  }
});

Deno.test("permissions: `deno task start` grants the folder of KV_PATH, of the environment or of .env", async () => {
  await using folder = await makeFolder();
  const [, grant = ""] = / folders=\$\(deno (.*?)\)/.exec(tasks.start.command) ?? [];
  const printed = async (env: Record<string, string>, given = grant) => {
    const args = given.replace("scripts/", `${root}scripts/`)
      .replace("--lock=", `--lock=${root}`).split(" ");
    const command = new Deno.Command(Deno.execPath(), { args, cwd: folder.path, env });
    const { stdout } = await command.output();
    return new TextDecoder().decode(stdout).trim();
  };
  const none = { KV_PATH: "" };
  assert.equal(await printed(none), "data");
  assert.equal(await printed({ KV_PATH: "/srv/farebox/a.kv" }), "/srv/farebox");
  assert.equal(await printed({ KV_PATH: "https://kv.test" }), "data");
  assert.equal(await printed({ KV_PATH: "/srv/a,b/a.kv" }), "/srv/a,,b");
  await Deno.writeTextFile(`${folder.path}/.env`, "KV_PATH=/srv/of-the-file/a.kv\n");
  assert.equal(await printed(none), "/srv/of-the-file");
  const [, development = ""] = / folders=\$\(deno (.*?)\)/.exec(tasks.dev.command) ?? [];
  assert.equal(await printed(none, development), "data", "development ignores the file");
  await Deno.mkdir(`${folder.path}/far`);
  await Deno.symlink(`${folder.path}/far/a.kv`, `${folder.path}/link.kv`);
  const far = await Deno.realPath(`${folder.path}/far`);
  assert.deepEqual(dataFolders(`${folder.path}/link.kv`), [folder.path, far]);
  // They become arguments, which others can read.
  for (const url of ["postgres://me:pw@h/db", "postgres:/me:pw@h/db", "me:pw@h/db", "https://h"]) {
    assert.deepEqual(dataFolders(url), ["data"], url);
  }
});

Deno.test("permissions: under those of its task, the service serves, notifies, backs up and stops", async () => {
  await using folder = await makeFolder();
  await using receiver = startReceiver();
  const env = { ...serviceEnv, ...receiverEnv, METRICS_TOKEN: "a-token-of-the-metrics" };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox);
  const subscription = { url: receiver.url, events: ["*"] };
  await farebox.json("/v1/webhooks/subscriptions", { key, body: subscription });
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "5" } });
  await eventually(async () => {
    const { logs } = await farebox.json("/v1/webhooks/logs?status=success", { key });
    return logs.length > 0;
  }, { what: "a delivery over TLS" });
  const metrics = await farebox.call("/metrics", { key: env.METRICS_TOKEN });
  assert.match(await metrics.text(), /^process_cpu_seconds_total \d/m);
  assert.equal((await farebox.call("/docs/guides/going-live")).status, 200);
  const out = `${folder.path}/today.backup`;
  const ran = await runFarebox(["backup", "--out", out], { folder: folder.path, url: farebox.url });
  assert.equal(ran.code, 0, ran.complaint);
  farebox.signal("SIGTERM");
  assert.equal((await farebox.ended).code, 0);
  assert.equal(farebox.errors(), "");
  assert.doesNotMatch(farebox.output(), /NotCapable|no_guides|file_exposed/);
});

Deno.test("permissions: the database and all that belongs to it is its owner's alone", {
  ignore: !isPosix,
}, async () => {
  await using folder = await makeFolder();
  const database = databaseOf(folder.path);
  const begin = () => startFarebox({ folder: folder.path, env: serviceEnv });
  const assertPrivate = () => {
    for (const [name, mode] of modesIn(folder.path)) assert.equal(mode, "600", name);
  };
  {
    await using farebox = await begin();
    const key = await makeProject(farebox);
    await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "5" } });
    const names = modesIn(folder.path).map(([name]) => name);
    assert.ok(["farebox.kv", "farebox.kv-wal", "farebox.kv-shm"].every((it) => names.includes(it)));
    assertPrivate();
    farebox.signal("SIGKILL");
    await farebox.ended;
  }
  // As an older version left them, and an older restore.
  await Deno.writeTextFile(`${database}.before-restore-2026-01-01T00-00-00-000Z`, "old");
  for (const [name] of modesIn(folder.path)) await Deno.chmod(`${folder.path}/${name}`, 0o644);
  await Deno.writeTextFile(`${folder.path}/notes.txt`, "not of the database");
  await Deno.chmod(`${folder.path}/notes.txt`, 0o644);
  await using again = await begin();
  await again.json("/v1/admin/projects", { key: serviceEnv.ADMIN_KEY });
  const exposed = modesIn(folder.path).filter(([, mode]) => mode !== "600");
  assert.deepEqual(exposed, [["notes.txt", "644"]]);
});
