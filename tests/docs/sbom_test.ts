import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { makeFolder } from "../support/process.ts";
import { textOf } from "../support/snippets.ts";
import { findCommand, testWith } from "../support/toolchains.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { tasks } = JSON.parse(await Deno.readTextFile(`${root}deno.json`));
const lock = JSON.parse(await Deno.readTextFile(`${root}deno.lock`));
const bash = await findCommand("bash");

async function createSbom(): Promise<string> {
  const [, ...args] = tasks.sbom.command.split(" ");
  const output = await new Deno.Command(Deno.execPath(), { args, cwd: root }).output();
  assert.ok(output.success, textOf(output));
  return new TextDecoder().decode(output.stdout);
}

interface Listed {
  "bom-ref": string;
  group?: string;
  name: string;
  version: string;
  scope: string;
  hashes: { alg: string; content: string }[];
}

Deno.test("sbom: lists each package of the lock file once, with its hash, and what it needs", async () => {
  const text = await createSbom();
  const bom = JSON.parse(text);
  assert.deepEqual([bom.bomFormat, bom.specVersion, bom.version], ["CycloneDX", "1.6", 1]);
  assert.match(
    bom.serialNumber,
    /^urn:uuid:[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/,
  );
  const components: Listed[] = bom.components;
  const listed = components.map(({ group, name, version }) =>
    `${group === undefined ? "" : `${group}/`}${name}@${version}`
  );
  const locked = Object.keys(lock.npm).map((key) => /^@?[^@]+@[^_]+/.exec(key)?.[0]);
  assert.deepEqual(listed.toSorted(), [...new Set(locked)].toSorted());
  for (const { name, hashes } of components) {
    assert.match(hashes[0]?.content ?? "", /^[\da-f]{128}$/, name);
  }
  const scopeOf = (name: string) => components.find((it) => it.name === name)?.scope;
  assert.deepEqual(["hono", "zod", "typescript", "fast-check"].map(scopeOf), [
    "required",
    "required",
    "excluded",
    "excluded",
  ]);
  const refs = new Set(["farebox", ...components.map((component) => component["bom-ref"])]);
  for (const { ref, dependsOn } of bom.dependencies) {
    for (const name of [ref, ...dependsOn]) assert.ok(refs.has(name), name);
  }
  assert.equal(await createSbom(), text, "the same lock file gives the same document");
});

testWith(
  bash,
  "ci: advisories fail it when they are severe, and never when they cannot be reached",
  async (path) => {
    await using folder = await makeFolder();
    const program = `#!/bin/sh
case "$1" in
  --version) echo "deno ${Deno.version.deno} (a stand-in)" ;;
  task) echo "ok | 3 passed | 0 failed (1s)" ;;
  audit) printf '%s\\n' "$AUDIT_OUTPUT"; exit "$AUDIT_CODE" ;;
esac
`;
    await Deno.writeTextFile(`${folder.path}/deno`, program, { mode: 0o755 });
    const PATH = `${folder.path}:${Deno.env.get("PATH")}`;
    const cases: [output: string, code: number, last: RegExp, exit: number][] = [
      ["No known vulnerabilities found", 0, /^9 passed, 0 failed$/m, 0],
      [
        "error: error sending request for url (https://registry.test)",
        1,
        /^9 passed, 0 failed$/m,
        0,
      ],
      ["Found 1 vulnerabilities\\nSeverity: 0 low, 1 high", 1, /^9 passed, 1 failed$/m, 1],
    ];
    for (const [said, audited, last, exit] of cases) {
      const env = { PATH, CHROMIUM: "/bin/true", AUDIT_OUTPUT: said, AUDIT_CODE: String(audited) };
      const { code, stdout } = await new Deno.Command(path, { args: [`${root}.ci/run`], env })
        .output();
      const printed = new TextDecoder().decode(stdout);
      assert.match(printed, last);
      assert.equal(code, exit, printed);
    }
  },
);
