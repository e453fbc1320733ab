/**
 * Removes from ./deno.json what neither the service nor the operator's commands import. Deno
 * downloads every package that its configuration names, used or not: most of an image would be
 * compilers and browser drivers.
 */
const specifier = /\b(?:from |import\()"([^."][^"]*)"/g;

async function* specifiersIn(path: string): AsyncGenerator<string> {
  if (/\.tsx?$/.test(path)) {
    const text = await Deno.readTextFile(path);
    for (const [, name = ""] of text.matchAll(specifier)) yield name;
  } else if (!path.split("/").at(-1)?.includes(".")) {
    for await (const { name } of Deno.readDir(path)) yield* specifiersIn(`${path}/${name}`);
  }
}

/** Returns which of these names of the import map production uses, in a copy of the project. */
export async function usedImports(names: readonly string[], root: string): Promise<string[]> {
  const used: string[] = [];
  for (const path of ["main.ts", "src", "scripts/farebox.ts", "scripts/farebox"]) {
    used.push(...await Array.fromAsync(specifiersIn(root + path)));
  }
  return names.filter((name) =>
    used.some((specifier) => specifier === name || specifier.startsWith(`${name}/`))
  );
}

if (import.meta.main) {
  const config = JSON.parse(await Deno.readTextFile("deno.json"));
  const names = await usedImports(Object.keys(config.imports), "");
  config.imports = Object.fromEntries(names.map((name) => [name, config.imports[name]]));
  await Deno.writeTextFile("deno.json", JSON.stringify(config, null, 2));
  console.log(`Kept ${names.join(", ")}`);
}
