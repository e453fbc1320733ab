import assert from "node:assert/strict";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { validate } from "dockerfile-utils";
import { variableNames } from "../../src/config/config.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { snippetOf, textOf } from "../support/snippets.ts";
import { findCommand, testWith } from "../support/toolchains.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const readFile = (name: string) => Deno.readTextFile(root + name);
const dockerfile = await readFile("Dockerfile");
const systemd = await findCommand("systemd-analyze");

/** The arguments of each instruction of that name in the Dockerfile. */
function instructions(name: string): string[] {
  const joined = dockerfile.replaceAll(/\\\n\s*/g, "");
  return [...joined.matchAll(new RegExp(`^${name} (.+)$`, "gm"))].map(([, text = ""]) => text);
}

/** The files that the image copies, by their source. */
function sources(): string[] {
  return instructions("COPY").flatMap((text) => text.split(" ").slice(0, -1));
}

/** The arguments of `deno` in `deno task start`, for these folders. */
async function argumentsOfStart({ app, data }: { app: string; data: string }): Promise<string[]> {
  const { tasks } = JSON.parse(await readFile("deno.json"));
  const [, command = ""] = tasks.start.command.split(" && deno ");
  return command.replaceAll('"', "").replace("=.,", `=${app},`).replaceAll("$folders", data)
    .split(" ");
}

async function run([name = "", ...args]: string[], cwd?: string) {
  const output = await new Deno.Command(name, { args, ...(cwd ? { cwd } : {}) }).output();
  return { success: output.success, text: textOf(output) };
}

Deno.test("hosting: Docker's linters find nothing wrong with the Dockerfile", () => {
  assert.deepEqual(validate(dockerfile), []);
  assert.deepEqual(instructions("USER"), ["deno"]);
});

Deno.test("hosting: the image has the version of Deno that all tests use", () => {
  assert.deepEqual(instructions("FROM"), [`denoland/deno:${Deno.version.deno}`]);
});

Deno.test("hosting: what .dockerignore admits is what the image copies", async () => {
  const let_through = [...(await readFile(".dockerignore")).matchAll(/^!(.+)$/gm)];
  assert.deepEqual(let_through.map(([, path]) => path).sort(), sources().sort());
});

Deno.test("hosting: what the image copies suffices to start, to answer its probe and to show guides", async () => {
  await using folder = await makeFolder();
  for (const copied of sources()) {
    await Deno.mkdir(dirname(`${folder.path}/${copied}`), { recursive: true });
    assert.ok((await run(["cp", "-r", root + copied, `${folder.path}/${copied}`])).success, copied);
  }
  for (const command of instructions("RUN").filter((text) => text.startsWith("deno "))) {
    const built = await run(command.split(" "), folder.path);
    assert.ok(built.success, built.text);
  }
  assert.ok(!sources().includes("deno.lock"), "it has what only tests use");
  const command: string[] = JSON.parse(instructions("CMD")[0] ?? "");
  const online = command.filter((arg) => arg !== "--cached-only");
  assert.deepEqual(online, await argumentsOfStart({ app: "/app", data: "/data" }));
  const { tasks } = JSON.parse(await Deno.readTextFile(`${folder.path}/deno.json`));
  const data = `${folder.path}/volume`;
  await Deno.mkdir(data);
  const here = command.map((arg) => arg.replace("/app", folder.path).replaceAll("/data", data));
  const env = { ...serviceEnv, KV_PATH: `${data}/farebox.kv` };
  await using service = await startFarebox({ folder: folder.path, command: here, env });

  const { host } = new URL(service.url);
  const [, probe = ""] = / CMD (\[.+)$/.exec(instructions("HEALTHCHECK")[0] ?? "") ?? [];
  const probeHere = JSON.parse(probe.replace("127.0.0.1:8000", host));
  assert.equal((await run(probeHere)).success, true);
  const page = await fetch(`${service.url}/docs/guides/container`);
  assert.match(await page.text(), /<h1>In a container<\/h1>/);
  const [, listing = ""] = / && deno (.+)/.exec(tasks.farebox.command) ?? [];
  const args = `${listing} projects list --json --service ${service.url}`.split(" ");
  const { ADMIN_KEY } = serviceEnv;
  const listed = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: folder.path,
    env: { ADMIN_KEY },
  }).output();
  assert.ok(listed.success, textOf(listed));
  service.signal("SIGTERM");
  assert.equal((await service.ended).code, 0);
  assert.equal((await run(probeHere)).success, false, "nothing listens any more");
});

Deno.test("hosting: the systemd unit runs what `deno task start` runs", async () => {
  const [, command = ""] = /^ExecStart=\S+ (.+)$/m.exec(await snippetOf("systemd", "systemd")) ??
    [];
  const folders = { app: "/opt/farebox", data: "/var/lib/farebox" };
  const online = command.split(" ").filter((arg) => arg !== "--cached-only");
  assert.deepEqual(online, await argumentsOfStart(folders));
});

Deno.test("hosting: no start of the service or of a command asks for a newer Deno", async () => {
  const off = "DENO_NO_UPDATE_CHECK=1";
  const { tasks } = JSON.parse(await readFile("deno.json"));
  for (const name of ["dev", "start", "farebox", "verify-ledger"]) {
    assert.ok(tasks[name].command.startsWith(`export ${off} && `), name);
  }
  assert.ok(instructions("ENV").some((text) => text.split(" ").includes(off)), "the image");
  const [, unit = ""] = /^Environment=(.+)$/m.exec(await snippetOf("systemd", "systemd")) ?? [];
  assert.ok(unit.split(" ").includes(off), "the unit");
});

Deno.test("hosting: the single binary has the V8 flags and the permissions of `deno task start`", async () => {
  const { tasks } = JSON.parse(await readFile("deno.json"));
  const [, ...compiled] = tasks.compile.command.split(" ");
  const flags = compiled.slice(1, compiled.indexOf("--include"));
  const started = await argumentsOfStart({ app: ".", data: "data" });
  assert.deepEqual(flags, started.slice(1, -1));
});

Deno.test("hosting: the unit and the container bound memory and tasks, and cannot change their code", async () => {
  const unit = await snippetOf("systemd", "systemd");
  for (const limit of [/^MemoryMax=\d+G$/m, /^TasksMax=\d+$/m, /^ProtectSystem=strict$/m]) {
    assert.match(unit, limit);
  }
  assert.doesNotMatch(unit, /^CacheDirectory=/m, "the code cache belongs to root");
  const container = await readFile("guides/container.md");
  for (const option of ["read-only", "memory", "pids-limit", "cap-drop ALL"]) {
    assert.ok(container.includes(`--${option}`), option);
  }
});

Deno.test("hosting: the code cache of the image is not written while the service runs", async () => {
  const instructionsInOrder = dockerfile.match(/^(USER|RUN deno cache).*/gm) ?? [];
  assert.match(instructionsInOrder[0] ?? "", /^RUN deno cache/, "root fills the cache");
  const command: string[] = JSON.parse(instructions("CMD")[0] ?? "");
  assert.ok(command.includes("--cached-only"));
});

testWith(
  systemd,
  "hosting: systemd finds nothing wrong with the unit, and little that is exposed",
  async () => {
    await using folder = await makeFolder();
    const file = `${folder.path}/farebox.service`;
    const unit = await snippetOf("systemd", "systemd");
    await Deno.writeTextFile(file, unit.replace("/usr/local/bin/deno", Deno.execPath()));
    const verified = await run(["systemd-analyze", "verify", "--man=no", file]);
    assert.deepEqual(verified, { success: true, text: "" });
    // In tenths: 0 is a service without any permissions, and 96 one without any of this.
    const threshold = "--threshold=25";
    const security = ["systemd-analyze", "security", "--offline=true", "--no-pager", threshold];
    const { success, text } = await run([...security, file]);
    assert.ok(success, text);
  },
);

Deno.test("hosting: every setting in the guides is one that the service reads", async () => {
  const others = [
    // Gone, as the guide to upgrading says.
    /^(KV_CHECKS_MAX|HTTP_UPGRADE)$/,
    /^DENO_/,
    // Of the command line, and of OpenTelemetry.
    /^FAREBOX_URL$/,
    /^OTEL_/,
    /^(NODE_EXTRA_CA_CERTS|HTTPS?_PROXY|ALL_PROXY|NO_PROXY)$/,
    /^(ENABLE_)?FORWARD_USER_INFO_/,
    /^WEBHOOK_SECRET$/,
    /^(ANTHROPIC|OPENAI|CLAUDE|CODEX)_/,
  ];
  for await (const { name } of Deno.readDir(`${root}guides`)) {
    const text = await readFile(`guides/${name}`);
    for (const [, variable = ""] of text.matchAll(/(?:^|`)([A-Z]+(?:_[A-Z]+)+)(?==|`)/gm)) {
      const known = variableNames.includes(variable) || others.some((own) => own.test(variable));
      assert.ok(known, `${name}: ${variable}`);
    }
  }
});
