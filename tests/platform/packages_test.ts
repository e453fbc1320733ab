import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { textOf } from "../support/snippets.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const readJson = async (name: string) => JSON.parse(await Deno.readTextFile(root + name));

/** What the service imports. Each package more is downloaded wherever it runs. */
const ofService = [
  "@opentelemetry/api",
  "@pydantic/genai-prices",
  "@simplewebauthn/server",
  "@types/d3-scale",
  "d3-scale",
  "eventsource-parser",
  "gpt-tokenizer",
  "hono",
  "marked",
  "nodemailer",
  "pg",
  "stripe",
  "ulid",
  "zod",
  "zod-openapi",
];

/** What the operator's commands import. */
const ofCommands = ["@opentelemetry/api", "commander", "csv-parse", "pg", "ulid", "zod"];

interface LockedGraph {
  specifiers: Record<string, string>;
  npm: Record<string, { dependencies?: string[]; optionalPeers?: string[] }>;
}

interface ModuleGraph {
  npmPackages: Record<string, { name: string }>;
}

/** What Deno finds from an entry, with a lock file that must fit. */
async function graphOf(entry: string, lock: string): Promise<ModuleGraph> {
  const args = ["info", "--json", `--lock=${lock}`, "--frozen", entry];
  const output = await new Deno.Command(Deno.execPath(), { args, cwd: root }).output();
  assert.ok(output.success, `update the lock files with 'deno task lock'\n${textOf(output)}`);
  return JSON.parse(new TextDecoder().decode(output.stdout));
}

for (
  const { name, entry, packages } of [
    { name: "service.lock", entry: "main.ts", packages: ofService },
    { name: "cli.lock", entry: "scripts/farebox.ts", packages: ofCommands },
  ]
) {
  Deno.test(`packages: ${name} has what ${entry} imports, and nothing else`, async () => {
    const lock: LockedGraph = await readJson(name);
    const imported = Object.keys(lock.specifiers).map((it) => /^npm:(@?[^@]+)@/.exec(it)?.[1]);
    assert.deepEqual(imported.toSorted(), packages);
    const { npmPackages } = await graphOf(entry, name);
    const found = new Set(Object.keys(npmPackages));
    const unused = Object.keys(lock.npm).filter((key) => !found.has(key) && !isTypes(key));
    assert.deepEqual(unused, []);
  });

  Deno.test(`packages: ${name} has the versions and the hashes of deno.lock`, async () => {
    const [{ npm }, whole] = await Promise.all([readJson(name), readJson("deno.lock")]);
    for (const [key, locked] of Object.entries<LockedGraph["npm"][string]>(npm)) {
      // A package is locked with those of its optional peers that are locked too.
      const { optionalPeers: _, ...here } = locked;
      const { optionalPeers: __, ...there } = whole.npm[key] ?? {};
      assert.deepEqual(here, there, key);
    }
  });
}

/** Types are checked, and never run. */
const isTypes = (key: string) => key.startsWith("@types/");

Deno.test("packages: every task has a lock file that must fit; those that run Farebox have their own", async () => {
  const { tasks } = await readJson("deno.json");
  const commands = Object.entries<{ command: string }>(tasks).flatMap(([name, { command }]) =>
    [...command.matchAll(/deno (?:run|test|check|compile|cache|install) [^&]+/g)]
      .map(([run]) => ({ name, run, lock: /--lock=(\S+) --frozen(?:=false)? /.exec(run)?.[1] }))
  );
  for (const { name, run, lock } of commands) assert.ok(lock, `${name}: ${run}`);
  const runs = commands.flatMap(({ name, run, lock }) => {
    const entry = /(?:run|compile) .*?\b(main|farebox|data_folders)\.ts/.exec(run)?.[1];
    return entry === undefined ? [] : [[name, entry, lock]];
  });
  assert.deepEqual(runs, [
    ["dev", "data_folders", "service.lock"],
    ["dev", "main", "service.lock"],
    ["start", "data_folders", "service.lock"],
    ["start", "main", "service.lock"],
    ["farebox", "farebox", "cli.lock"],
    ["verify-ledger", "farebox", "cli.lock"],
    ["compile", "main", "service.lock"],
  ]);
});
