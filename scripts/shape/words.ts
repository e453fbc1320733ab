import ts from "typescript";
import {
  fileNameOf,
  type FileRule,
  isInSrc,
  lineAt,
  nodesOf,
  type Source,
  startOf,
  type Violation,
} from "./source.ts";

/** Names that state where code was put instead of what it is. */
const EMPTY_NAMES: readonly string[] = [
  "utils",
  "helpers",
  "common",
  "manager",
  "service",
  "index",
];

/** Takes a path only, since files of src/ that are not code have names too. */
export function fileNames(path: string): Violation[] {
  if (!isInSrc(path) && !/\.tsx?$/.test(path)) return [];
  const stem = fileNameOf(path).replace(/\..*$/, "");
  const at = { path, line: 1, rule: "name" };
  if (isInSrc(path) && path.split("/").concat(stem).some((name) => EMPTY_NAMES.includes(name))) {
    return [{ ...at, message: "name it by what it contains: a noun of the domain, or a verb" }];
  }
  if (/^[a-z0-9]+(_[a-z0-9]+)*$/.test(stem)) return [];
  return [{ ...at, message: `"${stem}" is not in snake_case` }];
}

/** Unfinished work belongs elsewhere, not in comments; strings may contain anything. */
export const unfinishedWork: FileRule = (source) => {
  const literals = nodesOf(source.ast).filter(isLiteralText);
  return [...source.text.matchAll(/\b(TODO|FIXME|XXX)\b/g)]
    .filter(({ index }) => !literals.some((node) => startOf(node) <= index && index < node.end))
    .map(({ 0: word, index }) => unfinishedAt(source, word, index));
};

function isLiteralText(node: ts.Node): boolean {
  return ts.isStringLiteralLike(node) || ts.isRegularExpressionLiteral(node) ||
    ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
}

function unfinishedAt(source: Source, word: string, offset: number): Violation {
  const message = `${word} is unfinished work: finish it or take it out`;
  return { path: source.path, line: lineAt(source, offset), rule: "unfinished", message };
}
