import assert from "node:assert/strict";
import { startArguments } from "../../scripts/start_arguments.ts";
import { type Account, decodeAccount } from "../../src/ledger/account.ts";
import { accountKey, holdingPrefix } from "../../src/store/keys.ts";
import { adminKey, type Body } from "./world.ts";

/** The service as a process, on its own database file. */
export interface Farebox extends AsyncDisposable {
  url: string;
  pid: number;
  /** From the start of the process until it printed its URL, as on a machine without other work. */
  startedInMs: number;
  /** The output of the process so far, standard output and standard error. */
  output(): string;
  errors(): string;
  signal(name: Deno.Signal): void;
  ended: Promise<Deno.CommandStatus>;
  call(path: string, options?: CallOptions): Promise<Response>;
  json(path: string, options?: CallOptions): Promise<Body>;
}

interface CallOptions {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

interface StartOptions {
  /** The working directory of the process, which contains its database. */
  folder: string;
  dev?: boolean;
  env?: Record<string, string>;
  /** The arguments of `deno`, instead of its task's. */
  command?: string[];
  /** No file may grow beyond this many KiB, as on a full disk, until `growFiles`. */
  fileKiBMax?: number;
  /** The most files and connections that it may have open. */
  filesMax?: number;
  /** A file for its standard output. */
  output?: string;
  /** The `cgroup.procs` of the cgroup that it runs in. */
  inGroup?: string;
}

const announcement = /listens on (http:\/\/[^\s,]+)/;
const startDeadlineMs = 20_000;

/** The environment of a service that is not in development. */
export const serviceEnv = {
  BASE_URL: "http://127.0.0.1:9",
  ADMIN_KEY: adminKey,
  SECRETS_KEY: btoa("0123456789abcdef0123456789abcdef"),
};

/** A folder that is removed at the end. */
export async function makeFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "farebox-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** The database file in a folder. */
export const databaseOf = (folder: string) => `${folder}/farebox.kv`;

/** A port that nobody listens on. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/**
 * Starts the service by the command of its task; nothing of the test's environment is passed on.
 */
export function spawnFarebox(options: StartOptions): Deno.ChildProcess {
  const { folder, dev = false, env = {} } = options;
  const given: Record<string, string> = { KV_PATH: databaseOf(folder), ...env };
  const kvPath = given.KV_PATH || given.DENO_KV_DEFAULT_PATH;
  const command = options.command ??
    startArguments(dev ? "dev" : "start", { folder, kvPath });
  const kept = ["PATH", "HOME", "DENO_DIR"].flatMap((name) => {
    const value = Deno.env.get(name);
    return value ? [[name, value]] : [];
  });
  const { fileKiBMax, filesMax, output, inGroup } = options;
  const limits = [
    fileKiBMax === undefined ? "" : `trap "" XFSZ; ulimit -S -f ${2 * fileKiBMax};`,
    filesMax === undefined ? "" : `ulimit -n ${filesMax};`,
    output === undefined ? "" : `exec > ${output};`,
    inGroup === undefined ? "" : `echo $$ > ${inGroup};`,
  ].join("");
  const started = limits === ""
    ? { program: Deno.execPath(), args: command }
    : { program: "sh", args: ["-c", `${limits} exec "$0" "$@"`, Deno.execPath(), ...command] };
  return new Deno.Command(started.program, {
    args: started.args,
    cwd: folder,
    clearEnv: true,
    env: { PORT: "0", ...Object.fromEntries(kept), ...given },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Removes the limit of `fileKiBMax`. */
export async function growFiles({ pid }: Farebox): Promise<void> {
  const args = ["--pid", String(pid), "--fsize=unlimited:unlimited"];
  const { success, stderr } = await new Deno.Command("prlimit", { args }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

/** Starts the service, and waits until it listens. */
export async function startFarebox(options: StartOptions): Promise<Farebox> {
  const startedAt = performance.now();
  const child = spawnFarebox(options);
  const { promise: listens, resolve, reject } = Promise.withResolvers<string>();
  const output = collect(child.stdout, (text) => {
    const url = announcement.exec(text)?.[1];
    if (url) resolve(url);
  });
  const errors = collect(child.stderr);
  const timer = setTimeout(() => reject(new Error("it does not start")), startDeadlineMs);
  child.status.then(({ code }) => reject(new Error(`ended with ${code}: ${errors.text}`)));
  const url = await listens.finally(() => clearTimeout(timer)).catch((error) => {
    stop(child);
    throw error;
  });
  const startedInMs = performance.now() - startedAt - await queuedMs(child.pid);
  const call: Farebox["call"] = (path, { key = "sk_dev", body, headers } = {}) =>
    fetch(url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return {
    url,
    pid: child.pid,
    startedInMs,
    output: () => output.text,
    errors: () => errors.text,
    signal: (name) => child.kill(name),
    ended: Promise.all([child.status, output.ended, errors.ended]).then(([status]) => status),
    call,
    async json(path, given) {
      const response = await call(path, given);
      const text = await response.text();
      assert.ok(response.ok, `${path}: ${response.status} ${text}`);
      return JSON.parse(text);
    },
    async [Symbol.asyncDispose]() {
      stop(child);
      await Promise.all([child.status, output.ended, errors.ended]);
    },
  };
}

/** How long a process had to wait for a processor. Only Linux tells it; elsewhere 0. */
async function queuedMs(pid: number): Promise<number> {
  const text = await Deno.readTextFile(`/proc/${pid}/schedstat`).catch(() => "");
  return Number(text.split(" ")[1] ?? 0) / 1_000_000;
}

/** Runs a process that ends by itself; returns its exit code, its errors and its log. */
export async function refusedStart(
  options: StartOptions,
): Promise<{ code: number; complaint: string; log: string }> {
  const child = spawnFarebox(options);
  const timer = setTimeout(() => stop(child), startDeadlineMs);
  const { code, stderr, stdout } = await child.output();
  clearTimeout(timer);
  const decoder = new TextDecoder();
  return { code, complaint: decoder.decode(stderr), log: decoder.decode(stdout) };
}

/** Kills a process at once, if it has not ended yet. */
export function stop(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended already.
  }
}

function collect(stream: ReadableStream<Uint8Array>, onText?: (text: string) => void) {
  const collected = { text: "", ended: Promise.resolve() };
  collected.ended = (async () => {
    for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
      collected.text += piece;
      onText?.(collected.text);
    }
  })();
  return collected;
}

/** The accounts with holds in a stopped service's file, by user. */
export async function accountsHolding(folder: string): Promise<Map<string, Account>> {
  using kv = await Deno.openKv(databaseOf(folder));
  const accounts = new Map<string, Account>();
  for await (const { key: [, projectId, user] } of kv.list({ prefix: holdingPrefix })) {
    const row = await kv.get<Uint8Array>(accountKey(String(projectId), String(user)));
    const account = decodeAccount(row.value);
    if (account.holds.length > 0) accounts.set(String(user), account);
  }
  return accounts;
}

/** Waits until a condition holds; fails after this time. */
export async function eventually(
  check: () => boolean | Promise<boolean>,
  { withinMs = 15_000, what = "it" } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await check())) {
    assert.ok(performance.now() < deadline, `${what} did not come true within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
