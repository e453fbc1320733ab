import ts from "typescript";
import { type FileRule, isInSrc, lineAt, startOf } from "./source.ts";

/**
 * Every export has a doc comment directly above it. One is enough for overloads, and for a type
 * that shares its name with the schema that it is inferred from.
 */
export const exportDocs: FileRule = (source) => {
  const { path, text, ast } = source;
  if (!isInSrc(path)) return [];
  const exported = ast.statements.filter(isExportedDeclaration);
  const documented = new Set(exported.filter((node) => hasDoc(text, node)).flatMap(namesOf));
  return exported
    .filter((node) => !hasDoc(text, node) && !namesOf(node).some((name) => documented.has(name)))
    .map((node) => ({
      path,
      line: lineAt(source, startOf(node)),
      rule: "docs",
      message: `${namesOf(node).join(", ") || "the default export"} has no JSDoc directly above it`,
    }));
};

/** Re-exports have the doc comment of what they export, and are exempt. */
function isExportedDeclaration(node: ts.Statement): boolean {
  if (ts.isExportAssignment(node)) return true;
  if (!ts.canHaveModifiers(node)) return false;
  return ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

function namesOf(node: ts.Statement): string[] {
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => name.getText());
  }
  const isNamed = ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) ||
    ts.isEnumDeclaration(node) || ts.isModuleDeclaration(node);
  return isNamed && node.name ? [node.name.getText()] : [];
}

/** A comment followed by a blank line concerns the whole file. */
function hasDoc(text: string, node: ts.Statement): boolean {
  const comments = ts.getLeadingCommentRanges(text, node.pos) ?? [];
  const doc = comments.findLast(({ pos }) => text.startsWith("/**", pos));
  return doc !== undefined && !/\n\s*\n/.test(text.slice(doc.end, startOf(node)));
}
