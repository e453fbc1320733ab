import type { PostgresServer } from "./postgres.ts";

/** A PgBouncer in front of a server of a test. */
interface PgBouncer extends AsyncDisposable {
  /** The URL of the server's database through it. */
  url: string;
}

const folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin"];

/** The path of PgBouncer; null where it is not installed. */
export function findPgBouncer(): string | null {
  const paths = folders.map((folder) => `${folder}/pgbouncer`);
  return paths.find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  }) ?? null;
}

/** Starts one; `settings` are lines of its configuration. */
export async function startPgBouncer(
  server: PostgresServer,
  settings: readonly string[],
): Promise<PgBouncer> {
  const program = findPgBouncer();
  if (program === null) throw new Error("PgBouncer is not installed");
  const { port, name, password } = { port: unusedPort(), name: "farebox", password: "a secret" };
  const folder = await Deno.makeTempDir({ prefix: "farebox-pgbouncer-" });
  await Deno.chmod(folder, 0o755);
  await Deno.writeTextFile(`${folder}/users`, `"${name}" "${password}"\n`, { mode: 0o644 });
  const lines = [
    "[databases]",
    `postgres = host=127.0.0.1 port=${server.port}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = scram-sha-256",
    `auth_file = ${folder}/users`,
    "ignore_startup_parameters = options",
    ...settings,
  ];
  await Deno.writeTextFile(`${folder}/pgbouncer.ini`, `${lines.join("\n")}\n`, { mode: 0o644 });
  await Deno.chmod(`${folder}/users`, 0o644);
  await Deno.chmod(`${folder}/pgbouncer.ini`, 0o644);
  const started = [program, `${folder}/pgbouncer.ini`];
  // It refuses to run as root.
  const command = Deno.uid() === 0
    ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", ...started]
    : started;
  const [first = "", ...args] = command;
  const child = new Deno.Command(first, { args, stdout: "null", stderr: "null" }).spawn();
  await untilListening(port);
  return {
    url: server.url().replace(`:${server.port}`, `:${port}`),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

function unusedPort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      return (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    } catch (error) {
      if (attempt === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
