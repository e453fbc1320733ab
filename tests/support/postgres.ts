/** A PostgreSQL server of a test's own, on loopback, in a folder that is removed at its end. */
export interface PostgresServer extends AsyncDisposable {
  port: number;
  /** The folder of the server's data. */
  folder: string;
  /** The URL of its database, or of one of its schemas. */
  url(schema?: string): string;
  /** The URL of a new, empty schema. */
  newSchema(): Promise<string>;
  /** Starts it, and waits until it takes connections. */
  start(): Promise<void>;
  /** Stops it: `immediate` as a crash does, `fast` without waiting for sessions. */
  stop(mode: "immediate" | "fast"): Promise<void>;
  /** Makes a standby the primary. */
  promote(): Promise<void>;
  /** Sends a signal to its main process. */
  signal(name: Deno.Signal): void;
  /** Ends it at once and removes its folder, without waiting. */
  discard(): void;
  /** Runs statements by its own client; returns their output. */
  run(sql: string): Promise<string>;
}

interface ServerOptions {
  /** Lines of its configuration. */
  settings?: readonly string[];
  /** A certificate and its key, `server.crt` and `server.key`, with which it takes TLS. */
  files?: Record<string, string>;
  /** Another server that it follows as a standby. */
  standbyOf?: PostgresServer;
  /** Its name to the server that it follows. */
  name?: string;
}

/** Where Debian, and other systems, have the server's programs. */
const folders = [
  Deno.env.get("POSTGRES_BIN") ?? "",
  ...[18, 17, 16, 15, 14].map((version) => `/usr/lib/postgresql/${version}/bin`),
  "/usr/local/bin",
  "/usr/bin",
];
const user = "farebox";
const password = "a secret";

/** The folder of the server's programs; null where there are none. */
export function findPostgres(): string | null {
  return folders.find((folder) => folder && exists(`${folder}/initdb`)) ?? null;
}

/** Whether a standby can be made: some packages have the server's programs alone. */
export function hasStandbys(): boolean {
  const programs = findPostgres();
  return programs !== null && exists(`${programs}/pg_basebackup`);
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** How a store waits before it tries again. */
export const waits = {
  elapsed: () => performance.now(),
  pause: (ms: number) =>
    new Promise<void>((resolve) => setTimeout(resolve, 2 * ms * Math.random())),
};

/** Creates a server and starts it; it takes a second. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const programs = findPostgres();
  if (programs === null) throw new Error("PostgreSQL is not installed: set POSTGRES_BIN");
  const folder = await Deno.makeTempDir({ prefix: "farebox-postgres-" });
  // The server refuses to run as root.
  const isRoot = Deno.uid() === 0;
  if (isRoot) await command("chown", ["nobody", folder]);
  const run = (program: string, args: string[], env: Record<string, string> = {}) =>
    isRoot
      ? command("setpriv", [
        "--reuid=nobody",
        "--regid=nogroup",
        "--clear-groups",
        `${programs}/${program}`,
        ...args,
      ], env)
      : command(`${programs}/${program}`, args, env);
  const port = unusedPort();
  const data = `${folder}/data`;
  await createData(run, { folder, data, ...options });
  for (const [name, text] of Object.entries(options.files ?? {})) {
    await Deno.writeTextFile(`${data}/${name}`, text, { mode: 0o600 });
    if (isRoot) await command("chown", ["nobody", `${data}/${name}`]);
  }
  const settings = [
    ...options.files ? ["ssl=on"] : [],
    `port=${port}`,
    "listen_addresses='127.0.0.1'",
    `unix_socket_directories='${folder}'`,
    "max_connections=300",
    ...options.settings ?? [],
  ];
  await Deno.writeTextFile(`${data}/postgresql.auto.conf`, `${settings.join("\n")}\n`, {
    append: true,
  });
  let schemas = 0;
  const server: PostgresServer = {
    port,
    folder,
    url: (schema) =>
      `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres` +
      (schema ? `?options=${encodeURIComponent(`-c search_path=${schema}`)}` : ""),
    async newSchema() {
      const name = `farebox_${++schemas}`;
      await server.run(`CREATE SCHEMA ${name}`);
      return server.url(name);
    },
    start: async () =>
      void await run("pg_ctl", ["-D", data, "-w", "-t", "60", "-l", `${folder}/log`, "start"]),
    stop: async (mode) => void await run("pg_ctl", ["-D", data, "-w", "-m", mode, "stop"]),
    promote: async () => void await run("pg_ctl", ["-D", data, "-w", "promote"]),
    signal(name) {
      const [pid] = Deno.readTextFileSync(`${data}/postmaster.pid`).split("\n");
      Deno.kill(Number(pid), name);
    },
    discard() {
      server.signal("SIGQUIT");
      Deno.removeSync(folder, { recursive: true });
    },
    run: (sql) =>
      command("psql", [
        "-h",
        "127.0.0.1",
        "-p",
        `${port}`,
        "-U",
        user,
        "-d",
        "postgres",
        "-qAtc",
        sql,
      ], {
        PGPASSWORD: password,
      }),
    async [Symbol.asyncDispose]() {
      await server.stop("immediate").catch(() => {});
      await Deno.remove(folder, { recursive: true });
    },
  };
  await server.start();
  return server;
}

type Run = (program: string, args: string[], env?: Record<string, string>) => Promise<string>;

/** Creates a new database, or a copy of the one that the server follows. */
async function createData(
  run: Run,
  { folder, data, standbyOf, name = "standby" }: ServerOptions & { folder: string; data: string },
): Promise<void> {
  if (standbyOf) {
    const source = `host=127.0.0.1 port=${standbyOf.port} user=${user} application_name=${name}`;
    const options = ["-D", data, "-d", source, "-R", "-X", "stream", "-c", "fast"];
    await run("pg_basebackup", options, { PGPASSWORD: password });
    return;
  }
  const passwordFile = `${folder}/password`;
  await Deno.writeTextFile(passwordFile, password);
  await Deno.chmod(passwordFile, 0o644);
  const access = ["--auth=scram-sha-256", "--username", user, "--pwfile", passwordFile];
  await run("initdb", ["-D", data, "-E", "UTF8", "--locale=C", ...access]);
}

function unusedPort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function command(
  program: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args,
    env: { PATH: Deno.env.get("PATH") ?? "", ...env },
    clearEnv: true,
    // pg_ctl leaves its server's output to it, which would keep a pipe open.
    stdout: program.endsWith("psql") ? "piped" : "null",
    stderr: program.endsWith("psql") ? "piped" : "null",
  }).output().then((output) => ({
    success: output.success,
    stdout: program.endsWith("psql") ? new TextDecoder().decode(output.stdout) : "",
    stderr: program.endsWith("psql") ? new TextDecoder().decode(output.stderr) : "",
  }));
  if (success) return stdout.trim();
  throw new Error(`${program} ${args.join(" ")} failed: ${stderr}`);
}
