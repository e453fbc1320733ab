/** How a program that is a command is run. */
interface CommandOptions {
  cwd: string;
  /** Its home: nothing of this machine's own configuration is read. */
  home: string;
  env: Record<string, string>;
  /** After this time it is killed, with the processes that it started. */
  withinMs: number;
}

/** What a command printed. */
interface Printed {
  stdout: string;
  stderr: string;
}

/**
 * Runs a command to its end. Rejects with what it printed when it fails or takes too long. It
 * reaches nothing but loopback, so what it would report home is lost.
 */
export async function runCommand(
  [program, ...args]: [string, ...string[]],
  { cwd, home, env, withinMs }: CommandOptions,
): Promise<Printed> {
  const noProxy = "127.0.0.1,localhost";
  const child = new Deno.Command(program, {
    args,
    cwd,
    clearEnv: true,
    env: {
      PATH: Deno.env.get("PATH") ?? "",
      HOME: home,
      HTTP_PROXY: "http://127.0.0.1:9",
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: noProxy,
      no_proxy: noProxy,
      ...env,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    detached: true,
  }).spawn();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    killGroup(child.pid);
  }, withinMs);
  const output = await child.output().finally(() => clearTimeout(timer));
  const decoder = new TextDecoder();
  const [stdout, stderr] = [decoder.decode(output.stdout), decoder.decode(output.stderr)];
  if (late) throw new Error(`still running after ${withinMs / 1000} s: ${stdout}${stderr}`);
  if (!output.success) throw new Error(`exit code ${output.code}: ${stdout}${stderr}`);
  return { stdout, stderr };
}

/** A detached process leads a group of its own id. */
function killGroup(pid: number): void {
  try {
    Deno.kill(-pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** The JSON objects that a command printed, one on each line. */
export function linesOfJson(text: string): Record<string, unknown>[] {
  return text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}
