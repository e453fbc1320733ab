import ts from "typescript";
import { type FileRule, isInSrc, judgeNodes } from "./source.ts";

/** The files that build KV keys, so that they alone show what is stored. */
const HOMES: readonly string[] = [
  "src/store/keys.ts",
  "src/store/delivery_keys.ts",
  "src/store/request_keys.ts",
  "src/store/wallet_keys.ts",
];

const KV_METHODS: readonly string[] = ["get", "getMany", "set", "delete", "list"];
const KV_PROPERTIES: readonly string[] = ["key", "prefix"];

/** Keys are built by the functions of keys.ts, never written out where they are used. */
export const kvKeys: FileRule = (source) => {
  if (!isInSrc(source.path) || HOMES.includes(source.path)) return [];
  return judgeNodes(source, "key", (node) => {
    if (!isKeyArgument(node) && !isKeyProperty(node)) return undefined;
    return `this looks like a KV key, which belongs in ${HOMES[0]}`;
  });
};

function isKeyArgument(node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  const method = node.expression.name.text;
  const key = arrayIn(node.arguments[0]);
  if (!key || !KV_METHODS.includes(method)) return false;
  // getMany takes an array of keys: allowed when keys.ts built them, not when they are array
  // literals.
  return method !== "getMany" || key.elements.some(arrayIn);
}

function isKeyProperty(node: ts.Node): boolean {
  if (!ts.isPropertyAssignment(node) || !KV_PROPERTIES.includes(node.name.getText())) return false;
  const first = arrayIn(node.initializer)?.elements[0];
  return first !== undefined && ts.isStringLiteralLike(first);
}

/** The array literal itself, also when it is cast or in brackets. */
function arrayIn(node: ts.Node | undefined): ts.ArrayLiteralExpression | undefined {
  if (!node) return undefined;
  if (ts.isArrayLiteralExpression(node)) return node;
  const wraps = ts.isAsExpression(node) || ts.isSatisfiesExpression(node) ||
    ts.isParenthesizedExpression(node);
  return wraps ? arrayIn(node.expression) : undefined;
}
