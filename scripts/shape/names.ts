import ts from "typescript";
import { isInSrc, lineAt, type Source, startOf, type TreeRule, type Violation } from "./source.ts";

/** An exported name is unique in src/: a reader need not check where it was imported from. */
export const uniqueExports: TreeRule = (sources) => {
  const homes = new Map<string, string>();
  const found: Violation[] = [];
  for (const source of sources) {
    if (!isInSrc(source.path)) continue;
    for (const { name, line } of exportsOf(source)) {
      const home = homes.get(name) ?? source.path;
      homes.set(name, home);
      // A schema and the type inferred from it may share a name, in one file.
      if (home === source.path) continue;
      const message = `${name} is exported by ${home} too: give one of them another name`;
      found.push({ path: source.path, line, rule: "unique", message });
    }
  }
  return found;
};

function exportsOf(source: Source): { name: string; line: number }[] {
  return source.ast.statements.filter(isExported).flatMap((node) =>
    namesOf(node).map((name) => ({ name, line: lineAt(source, startOf(node)) }))
  );
}

function isExported(node: ts.Statement): boolean {
  if (!ts.canHaveModifiers(node)) return false;
  return ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

function namesOf(node: ts.Statement): string[] {
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => name.getText());
  }
  const isNamed = ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
  return isNamed && node.name ? [node.name.text] : [];
}
