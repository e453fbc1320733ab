import { textOf } from "./snippets.ts";

/** What a test of another language needs, or why this machine does not have it. */
export type Toolchain = { path: string } | { missing: string };

/** Without a C compiler, which some machines lack, and in half the time. */
export const goEnv = { CGO_ENABLED: "0" };
/** Installs in a fourth of pip's time. */
const installer = "uv==0.13.9";

/**
 * A test that needs a tool, and gets its path; without the tool its name tells why it does not run.
 */
export function testWith(
  tool: Toolchain,
  name: string,
  fn: (path: string) => Promise<void>,
): void {
  if ("path" in tool) Deno.test(name, () => fn(tool.path));
  else Deno.test({ name: `${name} (NOT run: ${tool.missing})`, ignore: true, fn() {} });
}

/** Returns the path of a command, also from places that PATH does not contain. */
export async function findCommand(name: string, ...folders: string[]): Promise<Toolchain> {
  for (const folder of [...(Deno.env.get("PATH") ?? "").split(":"), ...folders]) {
    const path = `${folder}/${name}`;
    const found = await Deno.stat(path).then(({ isFile }) => isFile, () => false);
    if (found) return { path };
  }
  return { missing: `there is no ${name}` };
}

/** Returns a Python with those packages, installed into `folder`. Throws for a wrong package. */
export async function installPython(folder: string, packages: string[]): Promise<Toolchain> {
  const system = await findCommand("python3");
  if ("missing" in system) return system;
  const made = await run(system.path, ["-m", "venv", folder]);
  if (!made.success) return { missing: `Python has no venv: ${lastLine(made.text)}` };
  const python = `${folder}/bin/python`;
  const got = await run(python, ["-m", "pip", "install", "--quiet", installer]);
  if (!got.success) return { missing: `PyPI is not reached: ${lastLine(got.text)}` };
  // PyPI is reachable, so from here on a failure is a real error.
  const args = ["pip", "install", "--quiet", "--python", python, ...packages];
  const installed = await run(`${folder}/bin/uv`, args);
  if (!installed.success) throw new Error(installed.text);
  return { path: python };
}

/** Returns a folder that is a Go module with that package. Throws for a wrong package. */
export async function installGo(folder: string, module: string): Promise<Toolchain> {
  const go = await findCommand("go", "/usr/local/go/bin");
  if ("missing" in go) return go;
  await Deno.mkdir(folder, { recursive: true });
  await run(go.path, ["mod", "init", "example.com/hooks"], folder);
  const got = await run(go.path, ["get", module], folder);
  if (!got.success) return { missing: `Go's module proxy is not reached: ${lastLine(got.text)}` };
  return go;
}

async function run(command: string, args: string[], cwd?: string) {
  const options = { args, env: goEnv, ...(cwd ? { cwd } : {}) };
  const output = await new Deno.Command(command, options).output();
  return { success: output.success, text: textOf(output) };
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
