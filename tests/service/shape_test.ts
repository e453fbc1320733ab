import assert from "node:assert/strict";
import { commentLength } from "../../scripts/shape/comments.ts";
import { exportDocs } from "../../scripts/shape/docs.ts";
import { forbiddenGlobals } from "../../scripts/shape/globals.ts";
import { deadFiles, importCycles, importDirection } from "../../scripts/shape/imports.ts";
import { kvKeys } from "../../scripts/shape/keys.ts";
import { uniqueExports } from "../../scripts/shape/names.ts";
import { fileLength, functionLength } from "../../scripts/shape/size.ts";
import { type FileRule, parse, type TreeRule, type Violation } from "../../scripts/shape/source.ts";
import { escapeHatches } from "../../scripts/shape/types.ts";
import { fileNames, unfinishedWork } from "../../scripts/shape/words.ts";

function passes(rule: FileRule, path: string, text: string): void {
  assert.deepEqual(rule(parse(path, text)), [], `${path}: ${text}`);
}

function flags(rule: FileRule, path: string, text: string, line = 1): void {
  const found = rule(parse(path, text));
  assert.deepEqual(found.map((violation) => violation.line), [line], `${path}: ${text}`);
}

function judgeTree(rule: TreeRule, files: Record<string, string>): Violation[] {
  return rule(Object.entries(files).map(([path, text]) => parse(path, text)));
}

function lines(count: number): string {
  return "work();\n".repeat(count);
}

Deno.test("imports: a module imports the modules below it, and none above", () => {
  passes(importDirection, "src/ledger/charge.ts", `import { a } from "../base/money.ts";`);
  passes(importDirection, "src/ledger/charge.ts", `import { a } from "../events/outbox.ts";`);
  passes(importDirection, "src/ledger/charge.ts", `import { a } from "../deps.ts";`);
  passes(importDirection, "src/ledger/charge.ts", `import { z } from "zod";`);
  flags(importDirection, "src/ledger/charge.ts", `import { a } from "../chat/settle.ts";`);
  flags(
    importDirection,
    "src/webhooks/delivery/lease.ts",
    `import { a } from "../../ledger/entries.ts";`,
  );
  flags(importDirection, "src/console/page.ts", `import { a } from "../platform/log.ts";`);
  flags(importDirection, "src/store/commit.ts", `\nimport { a } from "../events/outbox.ts";`, 2);
});

Deno.test("imports: base imports nothing of the project, not even deps", () => {
  passes(importDirection, "src/base/ids.ts", `import { a } from "./money.ts";`);
  flags(importDirection, "src/base/ids.ts", `import type { Deps } from "../deps.ts";`);
});

Deno.test("imports: types, re-exports and dynamic imports go the same way as values", () => {
  const path = "src/events/outbox.ts";
  flags(importDirection, path, `import type { A } from "../ledger/entries.ts";`);
  flags(importDirection, path, `export { a } from "../ledger/entries.ts";`);
  flags(importDirection, path, `export * from "../ledger/entries.ts";`);
  flags(importDirection, path, `const a = await import("../ledger/entries.ts");`);
  flags(importDirection, path, `type A = import("../ledger/entries.ts").A;`);
});

Deno.test("imports: only the app imports routes, and no module imports the app", () => {
  passes(importDirection, "src/app.ts", `import { routes } from "./chat/routes.ts";`);
  flags(importDirection, "src/inference/admit/admit.ts", `import { routes } from "./routes.ts";`);
  flags(
    importDirection,
    "tests/inference/chat_test.ts",
    `import { a } from "../src/chat/routes.ts";`,
  );
  passes(importDirection, "main.ts", `import { createApp } from "./src/app.ts";`);
  passes(importDirection, "tests/world.ts", `import { createApp } from "../src/app.ts";`);
  flags(importDirection, "src/console/page.ts", `import { createApp } from "../app.ts";`);
});

Deno.test("imports: a store is for its own module only", () => {
  passes(importDirection, "src/projects/keys.ts", `import { a } from "./store.ts";`);
  passes(importDirection, "src/ledger/charge.ts", `import { a } from "../store/commit.ts";`);
  flags(importDirection, "src/ledger/charge.ts", `import { a } from "../projects/store.ts";`);
});

Deno.test("imports: deps takes types only, and only from base, store and config", () => {
  passes(importDirection, "src/deps.ts", `import type { Config } from "./config.ts";`);
  passes(importDirection, "src/deps.ts", `import { type Kv } from "./store/kv.ts";`);
  flags(importDirection, "src/deps.ts", `import { a } from "./base/ids.ts";`);
  flags(importDirection, "src/deps.ts", `import type { A } from "./ledger/entries.ts";`);
});

Deno.test("imports: src/ imports nothing from outside of it, and has no unknown module", () => {
  flags(importDirection, "src/base/ids.ts", `import { a } from "../../tests/world.ts";`);
  flags(importDirection, "src/billing/invoice.ts", `export const a = 1;`);
});

Deno.test("cycle: a cycle of imports is reported, also one through a type", () => {
  const files = {
    "src/a.ts": `import { b } from "./b.ts";`,
    "src/b.ts": `import { type X, c } from "./c.ts";`,
    "src/c.ts": `\nexport { a } from "./a.ts";`,
    "src/d.ts": `import { a } from "./a.ts";`,
  };
  const cycle = {
    path: "src/c.ts",
    line: 2,
    rule: "cycle",
    message: "src/a.ts -> src/b.ts -> src/c.ts -> src/a.ts",
  };
  assert.deepEqual(judgeTree(importCycles, files), [cycle]);
  const rounds = [
    `import type { A } from "./a.ts";`,
    `import { type A } from "./a.ts";`,
    `export type { A } from "./a.ts";`,
    `type B = import("./a.ts").A;`,
  ];
  for (const round of rounds) {
    assert.deepEqual(judgeTree(importCycles, { ...files, "src/c.ts": `\n${round}` }), [cycle]);
  }
  const types = {
    "src/a.ts": `import type { B } from "./b.ts";`,
    "src/b.ts": `import type { A } from "./a.ts";`,
  };
  assert.equal(judgeTree(importCycles, types).length, 1);
  assert.deepEqual(judgeTree(importCycles, { ...types, "src/b.ts": "export type B = 1;" }), []);
});

Deno.test("dead: a file that neither main.ts nor the app reaches is reported", () => {
  const found = judgeTree(deadFiles, {
    "main.ts": `import { app } from "./src/app.ts";`,
    "src/app.ts": `import type { A } from "./ledger/types.ts";`,
    "src/ledger/types.ts": `export type A = import("./deeper.ts").B;`,
    "src/ledger/deeper.ts":
      `export type B = 1; new Worker(new URL("./worker.ts", import.meta.url));`,
    "src/ledger/worker.ts": `self.onmessage = () => {};`,
    "src/ledger/lost.ts": `import { app } from "../app.ts";`,
    "tests/lost_test.ts": `import { lost } from "../src/ledger/lost.ts";`,
  });
  assert.deepEqual(found.map(({ path }) => path), ["src/ledger/lost.ts"]);
});

Deno.test("global: time, randomness, network, environment and storage come through deps", () => {
  const forbidden = [
    "Date.now()",
    `Date["now"]()`,
    "new Date()",
    "Date()",
    "Math.random()",
    "crypto.randomUUID()",
    "globalThis.crypto.getRandomValues(bytes)",
    "performance.now()",
    "fetch(url)",
    "globalThis.fetch(url)",
    "make({ fetch })",
    "setTimeout(later, 1)",
    "setInterval(later, 1)",
    `Deno.env.get("PORT")`,
    "Deno.openKv()",
    `import { setTimeout } from "node:timers/promises"; setTimeout(1)`,
  ];
  for (const text of forbidden) {
    flags(forbiddenGlobals, "src/chat/forward.ts", text);
    passes(forbiddenGlobals, "src/platform/deps.ts", text);
    passes(forbiddenGlobals, "main.ts", text);
  }
});

Deno.test("global: a name that only equals a forbidden one is allowed", () => {
  const allowed = [
    "new Date(ms)",
    "deps.fetch(url)",
    "type Deps = { fetch: typeof fetch }",
    "const { fetch } = deps; fetch(url)",
    "function send(fetch: Fetch) { return fetch(url); }",
    "const clock = { setTimeout: deps.setTimeout }",
    "crypto.subtle.digest(name, bytes)",
    `const text = "Date.now()"; // Date.now()`,
  ];
  for (const text of allowed) passes(forbiddenGlobals, "src/chat/forward.ts", text);
});

Deno.test("global: a parameter named fetch shadows it in its own function only", () => {
  const text = "function send(fetch: Fetch) { fetch(url); }\nfetch(url);";
  flags(forbiddenGlobals, "src/chat/forward.ts", text, 2);
});

Deno.test("length: a file has at most 400 lines", () => {
  for (const path of ["main.ts", "src/ledger/charge.ts", "tests/ledger/charge_test.ts"]) {
    passes(fileLength, path, lines(400));
    flags(fileLength, path, lines(401));
  }
});

Deno.test("length: 50 lines a function in the service, 80 in tests, whatever its form", () => {
  for (const head of ["function f() {", "const f = () => {", "const f = function () {"]) {
    passes(functionLength, "src/ledger/charge.ts", `${head}\n${lines(48)}}`);
    flags(functionLength, "src/ledger/charge.ts", `${head}\n${lines(49)}}`);
    passes(functionLength, "tests/world.ts", `${head}\n${lines(78)}}`);
    flags(functionLength, "tests/world.ts", `${head}\n${lines(79)}}`);
  }
  flags(functionLength, "src/ledger/charge.ts", `class A {\nf() {\n${lines(49)}}\n}`, 2);
});

Deno.test("length: a factory is not charged for the longer functions that it contains", () => {
  const closure = `() => {\n${lines(30)}}`;
  const factory = `function make() {\nreturn {\na: ${closure},\nb: ${closure},\n};\n}`;
  passes(functionLength, "src/ledger/charge.ts", factory);
  const oneLiners = "list.map((x) => x);\n".repeat(49);
  flags(functionLength, "src/ledger/charge.ts", `function make() {\n${oneLiners}}`);
  const nested = `function make() {\nconst inner = () => {\n${lines(49)}};\n}`;
  flags(functionLength, "src/ledger/charge.ts", nested, 2);
});

Deno.test("length: a test's own body may have 120 lines", () => {
  const forms = [
    (body: string) => `Deno.test("a", ${body});`,
    (body: string) => `Deno.test({ name: "a", fn: ${body} });`,
    (body: string) => `t.step("a", ${body});`,
  ];
  for (const form of forms) {
    passes(functionLength, "tests/a_test.ts", form(`() => {\n${lines(118)}}`));
    flags(functionLength, "tests/a_test.ts", form(`() => {\n${lines(119)}}`));
  }
});

Deno.test("key: KV keys are built in keys.ts only", () => {
  const forbidden = [
    `kv.get(["account", id])`,
    `kv.set(["account", id] as const, value)`,
    `kv.delete([name, id])`,
    `kv.list(["account"])`,
    `kv.getMany([["account", id]])`,
    `write.check({ key: ["account", id], versionstamp })`,
    `kv.list({ prefix: ["account"] })`,
  ];
  for (const text of forbidden) {
    flags(kvKeys, "src/ledger/store.ts", text);
    passes(kvKeys, "src/store/keys.ts", text);
    passes(kvKeys, "tests/world.ts", text);
  }
  for (const text of ["kv.get(keys.account(id))", "kv.getMany([keys.account(id)])", "f([1])"]) {
    passes(kvKeys, "src/ledger/store.ts", text);
  }
});

Deno.test("types: any, ! and casts stay at the edges", () => {
  const forbidden = ["let a: any", "const a = list[0]!", "const a = b as C", "const a = <C>b"];
  for (const text of forbidden) {
    flags(escapeHatches, "src/ledger/charge.ts", text);
    const edges = ["src/ledger/schema.ts", "src/ledger/store.ts", "src/store/commit.ts"];
    for (const path of [...edges, "src/base/json.ts", "src/platform/deps.ts", "tests/world.ts"]) {
      passes(escapeHatches, path, text);
    }
  }
  for (const text of ["const a = [1] as const", "const a = b satisfies C", "const a = !b"]) {
    passes(escapeHatches, "src/ledger/charge.ts", text);
  }
});

Deno.test("name: files are snake_case words that describe their content", () => {
  for (const path of ["src/store/group_commit.ts", "src/console/page.tsx", "tests/README.md"]) {
    assert.deepEqual(fileNames(path), [], path);
  }
  const refused = [
    "src/store/groupCommit.ts",
    "src/store/group-commit.ts",
    "tests/chatTest.ts",
    "src/chat/utils.ts",
    "src/chat/helpers/text.ts",
    "src/console/index.html",
    "src/ledger/service.ts",
  ];
  for (const path of refused) assert.equal(fileNames(path).length, 1, path);
});

Deno.test("unfinished: unfinished work is found in comments, not in strings", () => {
  for (const word of ["TODO", "FIXME", "XXX"]) {
    flags(unfinishedWork, "scripts/readme.ts", `\n// ${word}: later`, 2);
    flags(unfinishedWork, "src/inference/admit/admit.ts", `const a = 1; /* ${word} */`);
    passes(unfinishedWork, "tests/a_test.ts", `const a = "${word}" + \`${word} \${b} ${word}\`;`);
  }
  passes(unfinishedWork, "src/inference/admit/admit.ts", "const TODOS = /TODO/;");
});

Deno.test("docs: an export has its JSDoc directly above it", () => {
  const declarations = [
    "export const a = 1;",
    "export function a() {}",
    "export async function a() {}",
    "export class A {}",
    "export type A = 1;",
    "export interface A {}",
    "export default a;",
  ];
  for (const text of declarations) {
    flags(exportDocs, "src/ledger/charge.ts", text);
    flags(exportDocs, "src/ledger/charge.ts", `// What it does.\n${text}`, 2);
    flags(exportDocs, "src/ledger/charge.ts", `/** About the file. */\n\n${text}`, 3);
    passes(exportDocs, "src/ledger/charge.ts", `/** What it does. */\n${text}`);
    passes(exportDocs, "tests/world.ts", text);
  }
});

Deno.test("docs: re-exports, inner declarations and a name's second half need none", () => {
  const fine = [
    `export { a } from "./a.ts";`,
    "const a = 1;",
    "/** A. */\nexport const A = z.string();\nexport type A = z.infer<typeof A>;",
    "/** A. */\nexport function a(x: string): void;\nexport function a(x: number): void;",
  ];
  for (const text of fine) passes(exportDocs, "src/ledger/charge.ts", text);
});

Deno.test("unique: an exported name is in one file of src/ only", () => {
  const one = parse("src/ledger/hold.ts", "export interface Rates {}");
  const other = parse("src/pricing/price.ts", "export type Rates = 1;");
  const test = parse("tests/world.ts", "export type Rates = 1;");
  const found = uniqueExports([one, other, test]);
  assert.deepEqual(found.map(({ path, line, rule }) => [path, line, rule]), [
    ["src/pricing/price.ts", 1, "unique"],
  ]);
  const pair = "export const a = z.string();\nexport type a = z.output<typeof a>;";
  assert.deepEqual(uniqueExports([parse("src/base/a.ts", pair)]), []);
});

Deno.test("comment: a line has at most 100 characters, unless it holds a URL", () => {
  const line = (length: number) => `// ${"x".repeat(length - 3)}`;
  passes(commentLength, "src/ledger/hold.ts", line(100));
  flags(commentLength, "src/ledger/hold.ts", `\n${line(101)}`, 2);
  flags(commentLength, "tests/world.ts", ` * ${"x".repeat(100)}`);
  passes(commentLength, "src/ledger/hold.ts", `// https://example.com/${"x".repeat(100)}`);
  passes(commentLength, "src/ledger/hold.ts", `const a = "${"x".repeat(100)}";`);
});
