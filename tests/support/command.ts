import { fileURLToPath } from "node:url";
import { adminKey } from "./world.ts";

/** The output of a command, and its exit code. */
export interface Ran {
  code: number;
  printed: string;
  complaint: string;
}

const root = fileURLToPath(new URL("../../", import.meta.url));

/** How a command is run. */
interface RunOptions {
  /** The command's working directory, where its `.env` would be. */
  folder: string;
  url?: string;
  env?: Record<string, string>;
  /** The command's standard input, which is never a terminal. */
  input?: string;
  /** A command that runs it, such as `setpriv` with options. */
  by?: readonly string[];
}

/** Runs an operator's command as its task in deno.json does, with its permissions. */
export async function runFarebox(
  args: readonly string[],
  { folder, url, env = {}, input = "", by = [] }: RunOptions,
): Promise<Ran> {
  const { tasks } = JSON.parse(Deno.readTextFileSync(`${root}deno.json`));
  const [run, ...rest]: string[] = tasks.farebox.command.split(" && deno ").at(-1)
    .replace("--lock=", `--lock=${root}`).split(" ");
  const script = rest.pop();
  const address: Record<string, string> = url === undefined ? {} : { FAREBOX_URL: url };
  const task = [run ?? "", "--config", `${root}deno.json`, ...rest, `${root}${script}`, ...args];
  const [program = "", ...given] = [...by, Deno.execPath(), ...task];
  const child = new Deno.Command(program, {
    args: given,
    cwd: folder,
    env: { ADMIN_KEY: adminKey, BASE_URL: "", PORT: "", NO_COLOR: "1", ...address, ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, printed: decoder.decode(stdout), complaint: decoder.decode(stderr) };
}
