import { firstMatch } from "./service.ts";

/** Calls of a model, by format. */
export type ModelCallKind = "chat" | "responses" | "messages" | "embeddings";

/** The kind, concurrency and duration of a load. */
export interface Load {
  port: number;
  path: string;
  headers: Record<string, string>;
  /** `retry` sends deposits under keys that have been seen. */
  kind: ModelCallKind | "deposit" | "charge" | "retry";
  users: number;
  /** The first of the users, and the distance from one to the next; 0 and 1 by default. */
  base?: number;
  every?: number;
  /** Draws users by chance. */
  drawn?: boolean;
  /** Counts responses that are no success, instead of ending. */
  counts?: boolean;
  connections: number;
  seconds: number;
}

/** The results. Latencies in ms. */
export interface Loaded {
  perSecond: number;
  p50: number;
  p99: number;
  /** Responses that were no success, and those of them with a status from 500 on. */
  failed: number;
  faults: number;
  requests: number;
}

const here = (name: string) => new URL(name, import.meta.url).pathname;

/** Starts a process of the benchmark, which prints its port. */
export async function startProcess(name: string, ...args: (string | number)[]) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", here(name), ...args.map(String)],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  return {
    port: Number(await firstMatch(child.stdout, /(\d+)\n/)),
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}

/** Runs a load in its own process. Throws when a response was not a success. */
export async function runLoad(load: Load): Promise<Loaded> {
  const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", here("load.ts"), JSON.stringify(load)],
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  const loaded: Loaded = JSON.parse(new TextDecoder().decode(stdout));
  if (loaded.failed > 0 && !load.counts) {
    throw new Error(`void: ${loaded.failed} of ${loaded.requests} failed`);
  }
  return loaded;
}

/** The processor time that a process has used, in hundredths of a second. Linux only. */
export function processorTicks(pid: number): number {
  const [, rest = ""] = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ");
  const fields = rest.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
