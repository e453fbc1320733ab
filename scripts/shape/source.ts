import ts from "typescript";

/** One parsed file of ours; `path` starts at the top of the repository and uses `/`. */
export type Source = { path: string; text: string; ast: ts.SourceFile };

/** One broken rule at one line, counted from 1. */
export type Violation = { path: string; line: number; rule: string; message: string };

/** A rule that one file alone keeps or breaks. */
export type FileRule = (source: Source) => Violation[];

/** A rule that only all files together can keep or break. */
export type TreeRule = (sources: readonly Source[]) => Violation[];

/** Parses without checking types; a file that does not parse is left for `deno check` to refuse. */
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

/** A violation for each node that `judge` has a message for. */
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

/** Where a node begins, after the comments before it. */
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

/** The last part of a path: `src/ledger/store.ts` -> `store.ts`. */
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
