import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { matches, readSnippets, type Snippet } from "../../scripts/snippets.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The snippets of a guide. */
export async function snippetsOf(guide: string): Promise<Snippet[]> {
  return readSnippets(await Deno.readTextFile(`${root}guides/${guide}.md`));
}

/**
 * Returns the only snippet of a guide with that mark. Fails when there is none, or more than one.
 */
export async function snippetOf(guide: string, mark: string): Promise<string> {
  const found = (await snippetsOf(guide)).filter((snippet) => snippet.mark === mark);
  assert.equal(found.length, 1, `${guide}: one snippet is marked ${mark}`);
  return found[0]?.code ?? "";
}

/** The command and arguments that start a program. */
export type CommandLine = [string, ...string[]];

/** Writes a snippet into a folder, and returns how to start it. */
export async function commandOf(
  { language, code }: Pick<Snippet, "language" | "code">,
  { folder, python }: { folder: string; python: string },
): Promise<CommandLine> {
  if (language === "sh") return ["sh", "-c", code];
  const file = `${folder}/snippet_${crypto.randomUUID()}.${language === "js" ? "mjs" : language}`;
  await Deno.writeTextFile(file, code);
  if (language === "python") return [python, file];
  assert.ok(language === "ts" || language === "js", "only these can be run");
  const locked = [`--lock=${root}deno.lock`, "--frozen", "--config", `${root}deno.json`];
  return [Deno.execPath(), "run", "-A", "--quiet", ...locked, file];
}

/** Runs a snippet against the service at `url`, and compares its output with the documented one. */
export async function runSnippet(
  { language, code, expected }: Snippet,
  at: { url: string; folder: string; python: string },
): Promise<void> {
  const { host } = new URL(at.url);
  const here = code.replaceAll("localhost:8000", host);
  const [name, ...args] = await commandOf({ language, code: here }, at);
  const output = await new Deno.Command(name, { args, cwd: at.folder }).output();
  // A service that chooses its own port creates links without it.
  const printed = textOf(output).replaceAll(/localhost:\d+/g, "localhost:8000");
  assert.ok(matches(printed, expected), `expected:\n${expected}\nprinted:\n${printed}`);
}

/** A command's output and errors. */
export function textOf({ stdout, stderr }: { stdout: Uint8Array; stderr: Uint8Array }): string {
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}
