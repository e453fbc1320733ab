import ts from "typescript";
import {
  fileNameOf,
  type FileRule,
  isInSrc,
  lineAt,
  nodesOf,
  type Source,
  startOf,
  type TreeRule,
  type Violation,
} from "./source.ts";

/**
 * What each module may import, beside itself. `deps` and the like are the files of those
 * names in `src/`. `src/app.ts` is in no row: it imports everything, and no module imports it.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  config: ["base"],
  deps: ["config", "base", "store", "metrics"], // types only
  http: ["deps", "base"],
  metrics: ["deps", "base"],
  store: ["config", "deps", "base"],
  platform: ["config", "deps", "base", "store", "metrics", "http"],
  fleet: ["deps", "base", "store"],
  unserved: [],
  refuse_path: ["base", "unserved"],
  access_log: ["deps", "base"],
  mount: ["deps", "base", "unserved", "refuse_path", "access_log"],
  events: ["base", "store"],
  projects: ["config", "deps", "base", "store", "events"],
  summaries: ["deps", "base", "store", "projects"],
  ledger: ["config", "deps", "base", "store", "summaries", "projects", "events"],
  statements: ["deps", "base", "store", "projects", "ledger"],
  requests: ["deps", "base", "store", "projects"],
  alerts: [
    "config",
    "deps",
    "base",
    "pages",
    "store",
    "summaries",
    "projects",
    "events",
    "ledger",
    "payments",
    "webhooks",
  ],
  pages: ["config", "base"],
  payments: ["config", "deps", "base", "store", "projects", "events", "ledger"],
  paywall: [
    "config",
    "deps",
    "base",
    "pages",
    "store",
    "summaries",
    "projects",
    "events",
    "ledger",
    "payments",
  ],
  wallets: ["config", "deps", "base", "pages", "store", "projects", "events", "ledger", "paywall"],
  pricing: ["config", "deps", "base", "store", "projects", "ledger"],
  upstreams: ["config", "deps", "base", "http", "store", "projects", "pricing"],
  formats: ["deps", "base", "projects", "ledger", "pricing", "upstreams", "inference"],
  inference: [
    "config",
    "deps",
    "base",
    "store",
    "fleet",
    "summaries",
    "projects",
    "requests",
    "events",
    "ledger",
    "paywall",
    "pricing",
    "upstreams",
  ],
  webhooks: ["config", "deps", "base", "store", "fleet", "projects", "events"],
  home: ["config", "deps", "base", "pages", "projects"],
  guides: ["config", "deps", "base", "pages"],
  docs: ["config", "deps", "base", "events", "pages", "guides"],
  backup: ["config", "deps", "base", "projects"],
  archive: ["deps", "base", "store", "projects", "ledger"],
  export: ["deps", "base", "store", "projects", "events", "ledger", "webhooks"],
  verify: ["deps", "base", "store", "projects", "ledger", "payments", "pricing", "webhooks"],
  console: [
    "config",
    "deps",
    "base",
    "alerts",
    "pages",
    "store",
    "fleet",
    "summaries",
    "projects",
    "requests",
    "events",
    "ledger",
    "payments",
    "paywall",
    "pricing",
    "upstreams",
    "inference",
    "wallets",
    "webhooks",
    "alerts",
  ],
  health: ["deps", "base", "store", "fleet"],
  not_found: ["config", "base", "pages", "console"],
  upkeep: [
    "deps",
    "store",
    "sweeps",
    "fleet",
    "summaries",
    "projects",
    "ledger",
    "pricing",
    "inference",
    "webhooks",
  ],
  sweeps: [
    "deps",
    "store",
    "ledger",
    "payments",
    "paywall",
    "requests",
    "summaries",
    "alerts",
    "wallets",
    "inference",
    "upstreams",
    "webhooks",
    "console",
  ],
  erasers: [
    "deps",
    "alerts",
    "store",
    "projects",
    "summaries",
    "ledger",
    "payments",
    "paywall",
    "requests",
    "wallets",
    "inference",
    "webhooks",
  ],
};

const APP = "src/app.ts";
/** The files that connect the modules: they import routes, and no module imports them. */
const TOP: readonly string[] = [APP, "src/route_map.ts", "src/api_doc.ts"];
const ENTRANCES: readonly string[] = ["main.ts", APP];

type Import = { target: string; line: number; typeOnly: boolean };

/** Imports only go down the table; only the app imports routes, and only a module its own store. */
export const importDirection: FileRule = (source) => {
  const { path } = source;
  const module = moduleOf(path);
  if (module !== undefined && !TOP.includes(path) && MAY_IMPORT[module] === undefined) {
    const message = `module "${module}" is not in the table of scripts/shape/imports.ts`;
    return [{ path, line: 1, rule: "imports", message }];
  }
  return importsOf(source).flatMap((entry) => {
    const message = faultOf(path, module, entry);
    return message === undefined ? [] : [{ path, line: entry.line, rule: "imports", message }];
  });
};

function faultOf(path: string, module: string | undefined, entry: Import): string | undefined {
  const { target, typeOnly } = entry;
  if (TOP.includes(path)) return undefined;
  if (/^routes\.tsx?$/.test(fileNameOf(target))) return `only ${APP} imports routes, not ${path}`;
  // main.ts, tests and scripts stand outside of these rules and may import every module.
  if (module === undefined) return undefined;

  if (TOP.includes(target)) return `only main.ts, tests and scripts import ${APP}`;
  const other = moduleOf(target);
  if (other === undefined) return `src/ imports nothing from outside of it, as ${target} is`;
  if (other === module) return undefined;
  if (fileNameOf(target) === "store.ts") return `${other}'s store is for ${other} alone`;
  const allowed = MAY_IMPORT[module] ?? [];
  if (!allowed.includes(other)) return `${module} may not import ${other}: ${listOf(allowed)}`;
  if (module === "deps" && !typeOnly) return `deps.ts imports types only, from ${target} too`;
  return undefined;
}

function listOf(allowed: readonly string[]): string {
  return allowed.length === 0 ? "it imports nothing of this project" : `only ${allowed.join(", ")}`;
}

/** `src/ledger/entries.ts` -> `ledger`, `src/deps.ts` -> `deps`, outside of src/ -> undefined. */
function moduleOf(path: string): string | undefined {
  return /^src\/([^/.]+)/.exec(path)?.[1];
}

/** No file reaches itself by its imports, not even by types alone: what two files need is below. */
export const importCycles: TreeRule = (sources) => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const finished = new Set<string>();
  const found: Violation[] = [];

  const follow = (source: Source, trail: readonly string[]): void => {
    for (const { target, line } of importsOf(source)) {
      const next = byPath.get(target);
      if (next === undefined || finished.has(target)) continue;
      if (trail.includes(target)) {
        const message = [...trail.slice(trail.indexOf(target)), target].join(" -> ");
        found.push({ path: source.path, line, rule: "cycle", message });
      } else {
        follow(next, [...trail, target]);
      }
    }
    finished.add(source.path);
  };

  for (const source of sources) if (!finished.has(source.path)) follow(source, [source.path]);
  return found;
};

/** Every file of src/ is reachable from main.ts or the app, if only for a type. */
export const deadFiles: TreeRule = (sources) => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  // Iterating a set includes what is added during the loop, so this walks the whole graph.
  const reached = new Set(ENTRANCES);
  for (const path of reached) {
    const source = byPath.get(path);
    if (source) importsOf(source).forEach(({ target }) => reached.add(target));
  }
  return sources
    .filter(({ path }) => isInSrc(path) && !reached.has(path))
    .map(({ path }) => ({
      path,
      line: 1,
      rule: "dead",
      message: `no import reaches this file from ${ENTRANCES.join(" or ")}`,
    }));
};

/**
 * Returns a file's imports of other project files: static, re-exports, dynamic, in types, of
 * workers.
 */
function importsOf(source: Source): Import[] {
  return nodesOf(source.ast).flatMap((node) => {
    const specifier = specifierOf(node);
    if (!specifier?.startsWith(".")) return [];
    const target = new URL(specifier, `file:///${source.path}`).pathname.slice(1);
    return [{ target, line: lineAt(source, startOf(node)), typeOnly: isTypeOnly(node) }];
  });
}

function specifierOf(node: ts.Node): string | undefined {
  const specifier = specifierNodeOf(node);
  return specifier && ts.isStringLiteralLike(specifier) ? specifier.text : undefined;
}

function specifierNodeOf(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isImportTypeNode(node)) {
    return ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined;
  }
  // A worker's file: `new Worker(new URL("./worker.ts", import.meta.url))`.
  if (ts.isNewExpression(node) && node.expression.getText() === "URL") {
    const [path, base] = node.arguments ?? [];
    const isCode = path && ts.isStringLiteralLike(path) && path.text.endsWith(".ts");
    return isCode && base?.getText() === "import.meta.url" ? path : undefined;
  }
  const dynamic = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
  return dynamic ? node.arguments[0] : undefined;
}

function isTypeOnly(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true;
  if (ts.isExportDeclaration(node)) return node.isTypeOnly || onlyTypes(node.exportClause);
  if (!ts.isImportDeclaration(node) || node.importClause === undefined) return false;
  const { phaseModifier, name, namedBindings } = node.importClause;
  if (phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  return name === undefined && onlyTypes(namedBindings);
}

/** `{ type A, type B }`: each name on its own marked as a type. */
function onlyTypes(clause: ts.NamedImportBindings | ts.NamedExportBindings | undefined): boolean {
  if (!clause || !(ts.isNamedImports(clause) || ts.isNamedExports(clause))) return false;
  return clause.elements.length > 0 && [...clause.elements].every(({ isTypeOnly }) => isTypeOnly);
}
