import ts from "typescript";
import { dottedName, type FileRule, isInSrc, judgeNodes, nodesOf } from "./source.ts";

/** The only files of src/ that may use the outside: they create the real Deps and their store. */
const DOORS: readonly string[] = ["src/platform/deps.ts", "src/platform/stores.ts"];

const FORBIDDEN_MEMBERS: readonly string[] = [
  "Date.now",
  "Math.random",
  "crypto.randomUUID",
  "crypto.getRandomValues",
  "performance.now",
  "Deno.env",
  "Deno.openKv",
];

const FORBIDDEN_NAMES: readonly string[] = ["fetch", "setTimeout", "setInterval"];

type OwnName = { name: string; scope: ts.Node };

/**
 * Time, randomness, network, environment and storage come through deps, so that tests can control
 * them.
 */
export const forbiddenGlobals: FileRule = (source) => {
  if (!isInSrc(source.path) || DOORS.includes(source.path)) return [];
  const ownNames = ownNamesOf(source.ast);
  return judgeNodes(source, "global", (node) => {
    const name = clockOf(node) ?? memberOf(node) ?? bareNameOf(node, ownNames);
    return name && `${name} bypasses Deps, the only way to the outside`;
  });
};

/** `new Date()` and `Date()` read the clock; `new Date(ms)` only converts. */
function clockOf(node: ts.Node): string | undefined {
  const makesDate = (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
    globalNameOf(node.expression) === "Date";
  if (!makesDate) return undefined;
  if (ts.isCallExpression(node)) return "Date()";
  return node.arguments?.length ? undefined : "new Date()";
}

function memberOf(node: ts.Node): string | undefined {
  if (ts.isIdentifier(node)) return undefined;
  const name = globalNameOf(node);
  return name && [...FORBIDDEN_MEMBERS, ...FORBIDDEN_NAMES].includes(name) ? name : undefined;
}

/** Passing the global on, as in `{ fetch }`, bypasses deps like calling it. */
function bareNameOf(node: ts.Node, ownNames: readonly OwnName[]): string | undefined {
  if (!ts.isIdentifier(node) || !FORBIDDEN_NAMES.includes(node.text)) return undefined;
  if (!isRead(node) || isOwn(node, ownNames)) return undefined;
  return node.text;
}

function globalNameOf(node: ts.Node): string | undefined {
  return dottedName(node)?.replace(/^(globalThis|self|window)\./, "");
}

/** False where the identifier only names something: a property, a parameter, `typeof fetch`. */
function isRead(identifier: ts.Identifier): boolean {
  const { parent } = identifier;
  if (ts.isShorthandPropertyAssignment(parent)) return true;
  if (ts.isTypeQueryNode(parent)) return false;
  if ("name" in parent && parent.name === identifier) return false;
  return !("propertyName" in parent && parent.propertyName === identifier);
}

/**
 * Names that are shadowed in the file. Imports are left out on purpose: `setTimeout` from
 * `node:timers` is the outside as well.
 */
function ownNamesOf(ast: ts.SourceFile): OwnName[] {
  return nodesOf(ast).flatMap((node) => {
    const declares = ts.isParameter(node) || ts.isVariableDeclaration(node) ||
      ts.isBindingElement(node) || ts.isFunctionDeclaration(node);
    const name = declares && node.name ? dottedName(node.name) : undefined;
    return name && FORBIDDEN_NAMES.includes(name) ? [{ name, scope: scopeOf(node) }] : [];
  });
}

function scopeOf(declaration: ts.Node): ts.Node {
  const isScope = (node: ts.Node) => ts.isBlock(node) || ts.isFunctionLike(node);
  return ts.findAncestor(declaration.parent, isScope) ?? declaration.getSourceFile();
}

function isOwn(identifier: ts.Identifier, ownNames: readonly OwnName[]): boolean {
  return ownNames.some(({ name, scope }) =>
    name === identifier.text && scope.pos <= identifier.pos && identifier.end <= scope.end
  );
}
