/**
 * `deno task shape`: enforces the rules of the codebase's structure, by its syntax alone. Prints
 * one `path:line rule: message` per violation, and exits 1 if there is any.
 */
import { exportDocs } from "./shape/docs.ts";
import { commentLength } from "./shape/comments.ts";
import { forbiddenGlobals } from "./shape/globals.ts";
import { deadFiles, importCycles, importDirection } from "./shape/imports.ts";
import { kvKeys } from "./shape/keys.ts";
import { uniqueExports } from "./shape/names.ts";
import { fileLength, functionLength } from "./shape/size.ts";
import {
  type FileRule,
  parse,
  type Source,
  type TreeRule,
  type Violation,
} from "./shape/source.ts";
import { escapeHatches } from "./shape/types.ts";
import { fileNames, unfinishedWork } from "./shape/words.ts";

const FILE_RULES: readonly FileRule[] = [
  importDirection,
  forbiddenGlobals,
  fileLength,
  functionLength,
  kvKeys,
  escapeHatches,
  unfinishedWork,
  exportDocs,
  commentLength,
];

const TREE_RULES: readonly TreeRule[] = [importCycles, deadFiles, uniqueExports];

async function main(): Promise<number> {
  const paths = ["main.ts"];
  // A missing folder throws: a check that has read nothing must not pass.
  for (const folder of ["src", "scripts", "tests"]) paths.push(...await filesUnder(folder));

  const code = paths.filter((path) => /\.tsx?$/.test(path)).sort(compare);
  const sources = await Promise.all(
    code.map(async (path) => parse(path, await Deno.readTextFile(path))),
  );

  const violations = inspect(paths, sources);
  for (const { path, line, rule, message } of violations) {
    console.log(`${path}:${line} ${rule}: ${message}`);
  }
  if (violations.length > 0) return 1;
  console.log(`shape: ${sources.length} files, 0 violations`);
  return 0;
}

async function filesUnder(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) paths.push(...await filesUnder(path));
    else paths.push(path);
  }
  return paths;
}

function inspect(paths: readonly string[], sources: readonly Source[]): Violation[] {
  const found = [
    ...paths.flatMap(fileNames),
    ...sources.flatMap((source) => FILE_RULES.flatMap((rule) => rule(source))),
    ...TREE_RULES.flatMap((rule) => rule(sources)),
  ];
  return found.sort((a, b) => compare(a.path, b.path) || a.line - b.line);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main());
