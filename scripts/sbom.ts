/**
 * Prints a software bill of materials as CycloneDX 1.6 JSON: every package of deno.lock with its
 * hash and its dependencies. Packages outside of service.lock and cli.lock are marked as excluded:
 * only tests and scripts use them. The same lock files always give the same document.
 */
interface LockedPackage {
  integrity?: string;
  dependencies?: string[];
  optionalDependencies?: string[];
}

interface LockFile {
  specifiers: Record<string, string>;
  npm: Record<string, LockedPackage>;
}

/** A package of the lock file, under the keys that it has there: one for each set of its peers. */
interface Component {
  name: string;
  version: string;
  keys: string[];
}

const [importMap, lockText] = await Promise.all(["imports.json", "deno.lock"].map(readText));
const runLocks = await Promise.all(["service.lock", "cli.lock"].map(readText));
const lock: LockFile = JSON.parse(lockText ?? "");
const { imports }: { imports: Record<string, string> } = JSON.parse(importMap ?? "");
const components = componentsOf(lock);

console.log(JSON.stringify(
  {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${await uuidOf(lockText ?? "")}`,
    version: 1,
    metadata: {
      component: { type: "application", "bom-ref": "farebox", name: "farebox" },
    },
    components: describeComponents(),
    dependencies: describeDependencies(),
  },
  null,
  2,
));

function readText(name: string): Promise<string> {
  return Deno.readTextFile(new URL(`../${name}`, import.meta.url));
}

function componentsOf({ npm }: LockFile): Map<string, Component> {
  const found = new Map<string, Component>();
  for (const key of Object.keys(npm)) {
    const { name, version } = parseKey(key);
    const purl = purlOf({ name, version });
    const component = found.get(purl) ?? { name, version, keys: [] };
    component.keys.push(key);
    found.set(purl, component);
  }
  return found;
}

/** `@scope/name@1.2.3_peer@4.5.6` names a package, and the versions of its peers. */
function parseKey(key: string): { name: string; version: string } {
  const [, name, version] = /^(@?[^@]+)@([^_]+)/.exec(key) ?? [];
  if (!name || !version) throw new Error(`deno.lock has a package '${key}' without a version`);
  return { name, version };
}

/** The package URL (purl), which is also the reference within the document. */
function purlOf({ name, version }: { name: string; version: string }): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function describeComponents() {
  const needed = neededInProduction();
  return [...components].map(([purl, { name, version, keys }]) => {
    const [scope, base] = name.startsWith("@") ? name.split("/") : [undefined, name];
    const { integrity } = lock.npm[keys[0] ?? ""] ?? {};
    return {
      type: "library",
      "bom-ref": purl,
      ...(scope === undefined ? {} : { group: scope }),
      name: base,
      version,
      scope: needed.has(purl) ? "required" : "excluded",
      ...(integrity === undefined ? {} : { hashes: [hashOf(integrity)] }),
      purl,
    };
  });
}

/** `sha512-BASE64` of a lock file is a hash in hexadecimal digits here. */
function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm = "", base64 = ""] = integrity.split("-");
  const content = Uint8Array.fromBase64(base64).toHex();
  return { alg: algorithm.replace(/^sha/, "SHA-"), content };
}

function describeDependencies() {
  const own = { ref: "farebox", dependsOn: Object.keys(imports).flatMap(importedPackage) };
  own.dependsOn = [...new Set(own.dependsOn)].sort();
  return [own, ...[...components.keys()].map((ref) => ({ ref, dependsOn: dependenciesOf(ref) }))];
}

function dependenciesOf(purl: string): string[] {
  const packages = (components.get(purl)?.keys ?? []).map((key) => lock.npm[key]);
  const named = packages.flatMap((it) => [
    ...it?.dependencies ?? [],
    ...it?.optionalDependencies ?? [],
  ]);
  return [...new Set(named.flatMap(lockedPackage))].sort();
}

/** A dependency is named by its package, and by its version where the lock file has several. */
function lockedPackage(dependency: string): string[] {
  const wanted = dependency.includes("@", 1) ? parseKey(dependency) : { name: dependency };
  return [...components].flatMap(([purl, { name, version }]) => {
    const fits = "version" in wanted ? version === wanted.version : true;
    return name === wanted.name && fits ? [purl] : [];
  });
}

function importedPackage(specifier: string): string[] {
  const target = imports[specifier] ?? "";
  const [, name, version] = /^npm:(@?[^@]+)@([^/]+)/.exec(target) ?? [];
  return name && version ? [purlOf({ name, version })].filter((it) => components.has(it)) : [];
}

/** What the service and the operator's commands use. */
function neededInProduction(): Set<string> {
  const keys = runLocks.flatMap((text): string[] => Object.keys(JSON.parse(text).npm));
  return new Set(keys.map((key) => purlOf(parseKey(key))));
}

/** A stable identifier of the content, in the form of a UUID of version 8 (RFC 9562). */
async function uuidOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = new Uint8Array(digest).toHex();
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${
    hex.slice(20, 32)
  }`;
}
