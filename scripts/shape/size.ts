import ts from "typescript";
import {
  dottedName,
  type FileRule,
  isInSrc,
  judgeNodes,
  lineAt,
  type Source,
  startOf,
} from "./source.ts";

type FunctionNode =
  | ts.FunctionDeclaration
  | ts.FunctionExpression
  | ts.ArrowFunction
  | ts.MethodDeclaration
  | ts.ConstructorDeclaration
  | ts.AccessorDeclaration;

type Limits = { fileLinesMax: number; functionLinesMax: number; testLinesMax: number };

const SERVICE: Limits = { fileLinesMax: 400, functionLinesMax: 50, testLinesMax: 50 };
const TESTS_AND_SCRIPTS: Limits = { fileLinesMax: 400, functionLinesMax: 80, testLinesMax: 120 };

function limitsOf(path: string): Limits {
  return isInSrc(path) || path === "main.ts" ? SERVICE : TESTS_AND_SCRIPTS;
}

/** A file is about one topic, and short enough to be read in one sitting. */
export const fileLength: FileRule = ({ path, text }) => {
  const { fileLinesMax } = limitsOf(path);
  const lines = text.replace(/\n$/, "").split("\n").length;
  if (lines <= fileLinesMax) return [];
  const message = `${lines} lines, at most ${fileLinesMax}: cut where a name appears`;
  return [{ path, line: 1, rule: "length", message }];
};

/** A function fits on one screen. */
export const functionLength: FileRule = (source) => {
  const { functionLinesMax, testLinesMax } = limitsOf(source.path);
  return judgeNodes(source, "length", (node) => {
    if (!isFunction(node)) return undefined;
    const linesMax = isTestBody(node) ? testLinesMax : functionLinesMax;
    const lines = ownLines(source, node);
    if (lines <= linesMax) return undefined;
    return `${nameOf(node)} has ${lines} lines, at most ${linesMax}`;
  });
};

/**
 * The lines of a function, less the longer functions inside it: each of those is measured on its
 * own, so that a factory is not charged for the closures that it returns.
 */
function ownLines(source: Source, node: ts.Node): number {
  let lines = linesOf(source, node);
  for (const inner of functionsWithin(node)) {
    const innerLines = linesOf(source, inner);
    if (innerLines > 1) lines -= innerLines;
  }
  return lines;
}

/** Returns the outermost functions inside `node`; deeper ones are part of these. */
function functionsWithin(node: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  ts.forEachChild(node, (child) => {
    found.push(...(isFunction(child) ? [child] : functionsWithin(child)));
  });
  return found;
}

function linesOf(source: Source, node: ts.Node): number {
  return lineAt(source, node.end) - lineAt(source, startOf(node)) + 1;
}

function isFunction(node: ts.Node): node is FunctionNode {
  return ts.isFunctionDeclaration(node) || ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) || ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node) || ts.isAccessor(node);
}

/** A callback of `Deno.test` or `t.step`, also as the `fn` of an options object. */
function isTestBody(node: ts.Node): boolean {
  const inOptions = ts.isPropertyAssignment(node.parent) && node.parent.name.getText() === "fn";
  const call = inOptions ? node.parent.parent.parent : node.parent;
  if (!ts.isCallExpression(call)) return false;
  return /^Deno\.test(\.only|\.ignore)?$|\.step$/.test(dottedName(call.expression) ?? "");
}

function nameOf(node: FunctionNode): string {
  return ts.getNameOfDeclaration(node)?.getText() ?? "a function";
}
