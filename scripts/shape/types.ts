import ts from "typescript";
import { fileNameOf, type FileRule, isInSrc, judgeNodes } from "./source.ts";

/** Outside values are `unknown` until they are parsed in these files, so a cast may be needed. */
const EDGES: readonly string[] = [
  "src/base/json.ts",
  "src/base/money.ts",
  "src/base/entry_kinds.ts",
  "src/base/entry_reasons.ts",
  "src/base/unbooked_reasons.ts",
  "src/base/token_classes.ts",
  "src/platform/deps.ts",
  "src/platform/deno_kv.ts",
];
const EDGE_NAMES: readonly string[] = ["schema.ts", "store.ts"];

/** Inside of these edges types are trusted, so nothing there may override the compiler. */
export const escapeHatches: FileRule = (source) => {
  if (!isInSrc(source.path) || isEdge(source.path)) return [];
  return judgeNodes(source, "types", (node) => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) return "`any` turns the checks off: use `unknown`";
    if (ts.isNonNullExpression(node)) return "`!` hides a missing value: handle it";
    if (isCast(node)) return "a cast belongs in schema.ts or store.ts: parse or narrow instead";
    return undefined;
  });
};

function isEdge(path: string): boolean {
  return EDGES.includes(path) || EDGE_NAMES.includes(fileNameOf(path)) ||
    path.startsWith("src/store/");
}

function isCast(node: ts.Node): boolean {
  if (!ts.isAsExpression(node) && !ts.isTypeAssertionExpression(node)) return false;
  return !ts.isConstTypeReference(node.type);
}
