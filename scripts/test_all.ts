/**
 * Runs all tests, with the pages in a browser where Chromium is installed. Modules run beside each
 * other: many wait for time to pass, or for other programs. Types are not checked: `deno task
 * checks` does that.
 */

const browser = Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium";
/** One more than the processors of a small machine: a module often waits. */
const modulesAtOnce = Math.max(2, navigator.hardwareConcurrency) + 1;

const { code } = await new Deno.Command(Deno.execPath(), {
  args: [
    "test",
    "--lock=deno.lock",
    "--frozen",
    "--no-prompt",
    "-A",
    "--no-check",
    "--quiet",
    "--parallel",
    "tests/",
    ...await isFile(browser) ? await filesIn("tests/browser") : [],
  ],
  env: { DENO_JOBS: String(modulesAtOnce) },
  stdin: "null",
}).spawn().status;
Deno.exit(code);

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((found) => found.isFile, () => false);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  return entries.map(({ name }) => `${folder}/${name}`).toSorted();
}
