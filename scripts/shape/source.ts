import ts from "typescript";

/** One parsed file; `path` is relative to the repository and uses `/`. */
export type Source = { path: string; text: string; ast: ts.SourceFile };

/** One broken rule at one line, counted from 1. */
export type Violation = { path: string; line: number; rule: string; message: string };

/** A rule about single files. */
export type FileRule = (source: Source) => Violation[];

/** A rule about all files together. */
export type TreeRule = (sources: readonly Source[]) => Violation[];

/** Parses without checking types; `deno check` rejects a file that does not parse. */
export function parse(path: string, text: string): Source {
  const withParents = true;
  return { path, text, ast: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, withParents) };
}

/** Every node at and below `root`, parents first; comments and JSDoc are not nodes here. */
export function nodesOf(root: ts.Node): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(root);
  return nodes;
}

/** Returns a violation for each node that `judge` returns a message for. */
export function judgeNodes(
  source: Source,
  rule: string,
  judge: (node: ts.Node) => string | undefined,
): Violation[] {
  return nodesOf(source.ast).flatMap((node) => {
    const message = judge(node);
    if (message === undefined) return [];
    return [{ path: source.path, line: lineAt(source, startOf(node)), rule, message }];
  });
}

/** Returns where a node begins, after the comments before it. */
export function startOf(node: ts.Node): number {
  return node.getStart();
}

/** The line, counted from 1, of an offset into the file's text. */
export function lineAt(source: Source, offset: number): number {
  return source.ast.getLineAndCharacterOfPosition(offset).line + 1;
}

/** Whether the file is part of the service's modules. */
export function isInSrc(path: string): boolean {
  return path.startsWith("src/");
}

/** Returns the last part of a path: `src/ledger/store.ts` -> `store.ts`. */
export function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** `a.b.c` for a chain of plain names (`a["b"].c` too), undefined for anything else. */
export function dottedName(node: ts.Node): string | undefined {
  if (ts.isIdentifier(node)) return node.text;
  if (ts.isPropertyAccessExpression(node)) return joined(node.expression, node.name.text);
  if (!ts.isElementAccessExpression(node)) return undefined;
  const part = node.argumentExpression;
  return ts.isStringLiteralLike(part) ? joined(node.expression, part.text) : undefined;
}

function joined(left: ts.Node, name: string): string | undefined {
  const start = dottedName(left);
  return start === undefined ? undefined : `${start}.${name}`;
}
