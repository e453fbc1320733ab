/** Installs npm packages of exact versions into a folder of their own, once. Returns the folder. */
export async function installNpm(cache: string, packages: readonly string[]): Promise<string> {
  return await once(cache, packages, async (folder) => {
    await Deno.writeTextFile(`${folder}/package.json`, '{"private":true}');
    await run("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, ...packages]);
  });
}

/** Installs Python packages of exact versions into an environment of their own, once. */
export async function installPypi(cache: string, packages: readonly string[]): Promise<string> {
  return await once(cache, packages, async (folder) => {
    await run("python3", ["-m", "venv", folder]);
    await run(`${folder}/bin/python`, ["-m", "pip", "install", "--quiet", ...packages]);
  });
}

/** The folder is complete once it has a file that says so. */
async function once(
  cache: string,
  packages: readonly string[],
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = `${cache}/${packages.join("_").replaceAll(/[^\w.-]+/g, "-")}`;
  const complete = `${folder}/.complete`;
  const isThere = await Deno.stat(complete).then(() => true, () => false);
  if (isThere) return folder;
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(folder, { recursive: true });
  console.log(`installing ${packages.join(", ")} into ${folder}`);
  await install(folder);
  await Deno.writeTextFile(complete, "");
  return folder;
}

async function run(command: string, args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`${command}: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}
