import { startArguments } from "../start_arguments.ts";

/** The admin key of every measured service. */
export const adminKey = "bench-admin-key-of-at-least-32-characters";

const price = { input: "0.15", output: "0.6" };
/** The models that a measured project sells: as many as its counters keep apart. */
export const models: readonly string[] = [
  "m",
  ...Array.from({ length: 23 }, (_, n) => `m${n + 1}`),
];

/** A service in its own process, with its own database file, for the time of a measurement. */
export interface Service extends AsyncDisposable {
  url: string;
  /** The key of its first project. */
  key: string;
  projectId: string;
  pid: number;
  json(path: string, body?: unknown, key?: string): Promise<Record<string, unknown>>;
  /** Its memory in MiB, as the system reports it. */
  rssMiB(): number;
}

/**
 * Starts a service, by the same command as `deno task start`, with one project; or beside another
 * one, with its project.
 */
export async function startService(
  env: Record<string, string>,
  folder: string,
  { like, script = "", root }: {
    like?: Pick<Service, "key" | "projectId">;
    /** What a shell of its own mounts runs first; only root may do that. */
    script?: string;
    /** Another checkout to start, with a slash at its end. */
    root?: string;
  } = {},
): Promise<Service> {
  const kvPath = `${folder}/bench.kv`;
  const command = [
    Deno.execPath(),
    ...startArguments("start", { folder, kvPath, ...(root ? { root } : {}) }),
  ];
  const [program = "", ...args] = script
    ? ["unshare", "-m", "sh", "-c", `${script} && exec "$0" "$@"`, ...command]
    : command;
  const child = new Deno.Command(program, {
    args,
    cwd: folder,
    env: {
      PORT: "0",
      BASE_URL: "http://127.0.0.1:9",
      KV_PATH: kvPath,
      ADMIN_KEY: adminKey,
      SECRETS_KEY: btoa("0123456789abcdef0123456789abcdef"),
      LOG_LEVEL: "warn",
      ...env,
    },
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const url = await firstMatch(child.stdout, /listens on (http:\/\/[^\s,]+)/);
  const json: Service["json"] = async (path, body, key = service.key) => {
    const response = await fetch(url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return await response.json();
  };
  const service: Service = {
    url,
    key: "",
    projectId: "",
    pid: child.pid,
    json,
    rssMiB: () => rssMiB(child.pid),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
  if (like) return Object.assign(service, { key: like.key, projectId: like.projectId });
  const project = await json("/v1/admin/projects", {
    name: "Bench",
    pricing: { models: Object.fromEntries(models.map((name) => [name, price])) },
    limits: { user: { concurrent: null, spendPerDay: "100000", spendPerMonth: "1000000" } },
  }, adminKey);
  service.key = String(project.apiKey);
  service.projectId = String(Reflect.get(Object(project.project), "id"));
  return service;
}

/** Returns a process's memory in MiB, as the system reports it. */
export function rssMiB(pid: number): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/**
 * Returns the first group of the first match in a process's output; later output is read and
 * discarded.
 */
export async function firstMatch(output: ReadableStream<Uint8Array>, wanted: RegExp) {
  const reader = output.getReader();
  const decoder = new TextDecoder();
  for (let text = "";;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`ended without ${wanted}: ${text}`);
    text += decoder.decode(value, { stream: true });
    const found = wanted.exec(text)?.[1];
    if (!found) continue;
    reader.releaseLock();
    output.pipeTo(new WritableStream()).catch(() => {});
    return found;
  }
}

/** Creates a folder for one measurement, removed after it. */
export function makeFolder(): { path: string } & Disposable {
  const path = Deno.makeTempDirSync({ prefix: "farebox-bench-" });
  return { path, [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }) };
}
